// The duplicates of a corpus, at the threshold of the slider.

import { ask, byId, copies, element, latest, markup, quiet, tell } from "./ask.js";

const slider = byId("near");
const number = byId("near-number");
const source = byId("source");

export async function start(state) {
  let { corpus } = state;
  while (corpus.status === "reading") {
    showProgress(corpus);
    await new Promise((done) => setTimeout(done, 200));
    try {
      ({ corpus } = await ask("state"));
    } catch (error) {
      return tell(error);
    }
  }
  byId("reading").hidden = true;
  if (corpus.status === "failed") return tell(new Error(corpus.error));
  if (corpus.status === "none") return;
  byId("read").textContent = corpus.read + (corpus.faulty ? `; ${corpus.faulty} could not be read` : "");
  for (const [i, name] of corpus.sources.entries()) source.append(element("option", { value: i }, name));
  for (const input of [slider, number]) {
    input.min = corpus.lowest;
    input.value = Math.max(0.8, corpus.lowest);
  }
  byId("corpus").hidden = false;
  await move();
  await refreshMarks();
}

function showProgress({ records, pairs, bytes, total_bytes: total }) {
  byId("progress-words").textContent = `Reading: ${records.toLocaleString("en")} records, ${pairs.toLocaleString("en")} pairs`;
  const bar = byId("progress");
  if (total) Object.assign(bar, { max: total, value: bytes });
}

const at = (more = {}) => ({ near: Number(slider.value), source: source.value === "" ? null : Number(source.value), ...more });

const decide = latest(async (isLast) => {
  const answer = await ask("decide", at());
  if (!isLast()) return;
  byId("count").textContent = answer.words;
  byId("count").dataset.removed = answer.removed;
  byId("histogram").replaceChildren(markup(answer.svg));
  byId("command").textContent = answer.command;
});

const showBorder = latest(async (isLast) => {
  const { pairs } = await ask("border", at());
  if (!isLast()) return;
  byId("border").replaceChildren(...(pairs.length ? pairs.map(article) : [element("p", { className: "soft" }, "There are none.")]));
});

const showClusters = latest(async (isLast) => {
  const { clusters } = await ask("clusters", at());
  if (!isLast()) return;
  byId("clusters").replaceChildren(...(clusters.length ? clusters.map(family) : [element("p", { className: "soft" }, "There are none.")]));
});

const details = quiet(() => Promise.all([showBorder(), showClusters()]), 120);

async function move() {
  number.value = slider.value;
  slider.setAttribute("aria-valuetext", `similarity ${slider.value}`);
  const decided = decide();
  details();
  await decided;
}

slider.addEventListener("input", move);
number.addEventListener("change", () => {
  slider.value = number.value;
  move();
});
source.addEventListener("change", move);
copies(byId("copy"), byId("command"));

/** Two records side by side, to be marked. */
function article(pair) {
  const similarity = pair.similarity === null ? "below the lowest" : pair.similarity.toFixed(3);
  const button = (duplicate, name) => {
    const made = element("button", { type: "button", "aria-pressed": "false" }, name);
    made.addEventListener("click", () => mark(pair, duplicate, made));
    return made;
  };
  const actions = element("span", { className: "actions" }, button(true, "Duplicate"), button(false, "Not a duplicate"));
  const what = pair.goes ? "one of them goes" : "both stay";
  const header = element("header", {}, element("b", {}, similarity), element("span", { className: "soft" }, `exact Jaccard similarity, ${what}`), actions);
  const made = element("article", { className: "pair", "aria-label": `A pair of similarity ${similarity}` }, header, markup(pair.html));
  Object.assign(made.dataset, { a: pair.a, b: pair.b });
  return made;
}

async function mark({ a, b }, duplicate, button) {
  try {
    for (const other of button.parentElement.children) other.setAttribute("aria-pressed", String(other === button));
    showMarks(await ask("mark", { near: Number(slider.value), a, b, duplicate }));
    await decide();
  } catch (error) {
    tell(error);
  }
}

/** A cluster, whose members are asked for when it is opened. */
function family({ kept, records, giant, template, id, place, html }) {
  const badge = (name, why) => element("span", { className: "badge", title: why }, name);
  const summary = element(
    "summary",
    {},
    element("b", {}, records.toLocaleString("en")),
    ` records like ${id} `,
    element("span", { className: "soft" }, place),
    giant ? badge("giant family", "So many that somebody should look at it before anything is deleted") : null,
    template ? badge("template", "Most of it is text that many records share") : null,
  );
  const made = element("details", {}, summary, markup(html));
  made.addEventListener("toggle", async () => {
    if (!made.open || made.querySelector("table")) return;
    try {
      const { members } = await ask("members", at({ kept }));
      made.append(recordTable(members.map((member) => ({ ...member, of: kept }))));
    } catch (error) {
      tell(error);
    }
  });
  return made;
}

/** Records, each beside what it goes for. */
function recordTable(records) {
  const row = ({ record, id, place, html, of, similarity }) => {
    const cell = element("td", {});
    if (of !== null) {
      const button = element("button", { type: "button" }, "Compare");
      button.addEventListener("click", async () => {
        try {
          const pair = await ask("pair", { near: Number(slider.value), a: of, b: record });
          line.after(element("tr", {}, element("td", { colSpan: 4 }, article(pair))));
          button.disabled = true;
        } catch (error) {
          tell(error);
        }
      });
      cell.append(button);
    }
    const name = element("td", {}, id, element("br"), element("span", { className: "soft" }, place));
    const how = element("td", { className: "number" }, of === null ? "stays" : similarity.toFixed(3));
    const line = element("tr", {}, how, name, element("td", {}, markup(html)), cell);
    return line;
  };
  const heading = (name) => element("th", { scope: "col" }, name);
  const head = element("thead", {}, element("tr", {}, heading("similarity"), heading("record"), heading("how it begins"), heading("what it goes for")));
  return element("table", {}, head, element("tbody", {}, ...records.map(row)));
}

byId("search").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const { found, most } = await ask("search", at({ text: byId("search-text").value }));
    const words = found.length === most ? `The first ${most}:` : `${found.length} found`;
    byId("found").replaceChildren(element("p", {}, words), found.length ? recordTable(found) : "");
    tell(null);
  } catch (error) {
    tell(error);
  }
});

const refreshMarks = async () => showMarks(await ask("marks"));

let decisions = "";

function showMarks(answer) {
  ({ decisions } = answer);
  byId("export").disabled = answer.marks.length === 0;
  const note = answer.marks.length ? " Export the decisions beside it first." : "";
  byId("command-note").textContent = `Run in a shell, it removes exactly these records: it compares the same pairs.${note}`;
  if (answer.marks.length === 0) return byId("marks").replaceChildren();
  const percent = (part) => `${(100 * part).toFixed(1)} %`;
  const heading = (name) => element("th", { scope: "col" }, name);
  const cell = (text) => element("td", { className: "number" }, text);
  const precision = answer.precision
    .filter(({ marked }) => marked > 0)
    .map((at) => element("tr", {}, cell(at.near.toFixed(2)), cell(`${at.duplicates} of ${at.marked}`), cell(percent(at.precision)), cell(`${percent(at.at_least)} to ${percent(at.at_most)}`)));
  const mine = answer.marks.map((pair) => {
    const button = element("button", { type: "button" }, "Take back");
    button.addEventListener("click", async () => {
      try {
        showMarks(await ask("mark", { near: Number(slider.value), a: pair.a, b: pair.b, duplicate: null }));
        await decide();
        details();
      } catch (error) {
        tell(error);
      }
    });
    const said = pair.duplicate ? "duplicate" : "not a duplicate";
    const similarity = pair.similarity === null ? "below the lowest" : pair.similarity.toFixed(3);
    return element("tr", {}, cell(similarity), element("td", {}, pair.a_id), element("td", {}, pair.b_id), element("td", {}, said), element("td", {}, button));
  });
  byId("marks").replaceChildren(
    element("table", { id: "precision" }, element("caption", {}, "Precision of the pairs that you marked"), element("thead", {}, element("tr", {}, heading("near"), heading("duplicates"), heading("precision"), heading("95 % interval"))), element("tbody", {}, ...precision)),
    element("table", {}, element("caption", {}, "Marked pairs"), element("thead", {}, element("tr", {}, heading("similarity"), heading("one"), heading("other"), heading("marked as"), heading("mark"))), element("tbody", {}, ...mine)),
  );
}

byId("export").addEventListener("click", () => {
  const address = URL.createObjectURL(new Blob([decisions], { type: "application/jsonl" }));
  const link = element("a", { href: address, download: "decisions.jsonl" });
  link.click();
  URL.revokeObjectURL(address);
});
