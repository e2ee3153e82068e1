// A filter or an index: what it is, and what it says of an item.

import { ask, byId, element, latest, markup } from "./ask.js";

const path = byId("filter-path");
let opened = null;

export function start(state) {
  byId("filter-paths").replaceChildren(...state.filters.map((value) => element("option", { value })));
  if (state.filters.length) path.value = state.filters[0];
}

export function enter() {
  if (path.value) open();
}

export function leave() {
  byId("filter-chart").replaceChildren();
}

const open = latest(async (isLast) => {
  const content = byId("filter-content");
  content.hidden = true;
  const answer = await ask("filter", { path: path.value });
  if (!isLast()) return;
  if (opened !== answer.path) byId("ask-answer").replaceChildren();
  opened = answer.path;
  const row = ([name, value]) => element("tr", {}, element("th", { scope: "row" }, name), element("td", {}, value));
  byId("filter-facts").tBodies[0].replaceChildren(...answer.facts.map(row));
  const generations = answer.generations ?? [];
  byId("filter-generations").hidden = generations.length === 0;
  const cell = (text) => element("td", { className: "number" }, text);
  const count = (number) => (number === null ? "" : number.toLocaleString("en"));
  const generation = ({ items, capacity, fill, bytes }, i) =>
    element("tr", {}, element("th", { scope: "row" }, String(i + 1)), cell(count(items)), cell(count(capacity)), cell(fill === null ? "" : `${(100 * fill).toFixed(2)} %`), cell(`${count(bytes)} B`));
  byId("filter-generations").tBodies[0].replaceChildren(...generations.map(generation));
  byId("filter-chart").replaceChildren(...(answer.svg ? [markup(answer.svg)] : []));
  byId("ask-label").textContent = `Type or paste ${answer.asked}`;
  content.hidden = false;
});

byId("filter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  open();
});

byId("ask-form").addEventListener("submit", (event) => {
  event.preventDefault();
  answer();
});

const answer = latest(async (isLast) => {
  const said = await ask("ask", { path: opened, item: byId("ask-item").value });
  if (!isLast()) return;
  byId("ask-answer").replaceChildren(...(said.found ? neighbours(said) : hits(said)));
});

function hits({ near, hits, bands, threshold, by_band: byBand, likely }) {
  const verdict = element("p", { className: "count" }, near ? "Something near was seen." : "Nothing near was seen.");
  if (!bands) return [verdict];
  const needed = threshold === null ? "" : `, and ${threshold} must`;
  const chance = `Where so many hit, ${(100 * likely).toPrecision(3)} % of all draws of hash functions call it near.`;
  const band = (hit, i) => element("span", { className: hit ? "hit" : "", title: `band ${i + 1}: ${hit ? "hit" : "no hit"}` });
  const picture = element("div", { className: "bands", role: "img", "aria-label": `${hits} of ${bands} bands hit` }, ...byBand.map(band));
  return [verdict, element("p", {}, `${hits} of ${bands} bands hit${needed}. `, chance), picture];
}

function neighbours({ unit, found }) {
  if (!found.length) return [element("p", { className: "count" }, "Nothing near is there.")];
  const heading = (name) => element("th", { scope: "col" }, name);
  const row = ({ name, at }) => element("tr", {}, element("td", {}, name), element("td", { className: "number" }, String(at)));
  return [element("table", {}, element("thead", {}, element("tr", {}, heading("near"), heading(unit))), element("tbody", {}, ...found.map(row)))];
}
