// A plan, made anew while its sliders are dragged.

import { ask, byId, element, latest, markup } from "./ask.js";

const form = byId("plan-form");
const metric = byId("plan-metric");
const length = byId("plan-length");
let metrics = [];

/** What each metric starts with: near, far, and the ends and steps of their sliders. */
const STARTS = {
  hamming: { near: 4, far: 20, least: 0, most: 64, step: 1, length: 64 },
  symbols: { near: 2, far: 10, least: 0, most: 32, step: 1, length: 32 },
  cosine: { near: 0.95, far: 0.7, least: -1, most: 1, step: 0.01, length: 384 },
  l1: { near: 1, far: 4, least: 0, most: 10, step: 0.1, length: 64 },
  l2: { near: 1, far: 4, least: 0, most: 10, step: 0.1, length: 64 },
  default: { near: 0.8, far: 0.6, least: 0, most: 1, step: 0.01, length: 1 },
};

export function start(state) {
  ({ metrics } = state);
  metric.replaceChildren(...metrics.map(({ name, title }) => element("option", { value: name }, `${name}: ${title}`)));
  metric.value = "jaccard";
  choose();
}

const chosen = () => metrics.find(({ name }) => name === metric.value);

function choose() {
  const starts = STARTS[metric.value] ?? STARTS.default;
  const option = chosen().length;
  length.parentElement.hidden = !option;
  byId("plan-length-label").textContent = option ? option[0].toUpperCase() + option.slice(1) : "";
  byId("plan-shingle").parentElement.hidden = !chosen().shingle;
  length.value = starts.length;
  for (const name of ["near", "far"]) {
    const range = byId(`plan-${name}-range`);
    Object.assign(range, { min: starts.least, max: starts.most, step: starts.step });
    range.value = byId(`plan-${name}`).value = starts[name];
  }
}

export const enter = latest(async (isLast) => {
  const wanted = Object.fromEntries(new FormData(form));
  const { length: option, shingle } = chosen();
  if (option) wanted[option] = length.value;
  if (shingle) wanted.shingle = byId("plan-shingle").value;
  // Without far it means nothing.
  if (wanted.minimise === "bytes") delete wanted.minimise;
  const answer = await ask("plan", wanted);
  if (!isLast()) return;
  show(answer);
});

export function leave() {
  byId("plan-chart").replaceChildren();
}

function show({ plan, words, svg, command, python, rust }) {
  const facts = plan.error
    ? [["not possible", plan.error]]
    : [
        ["structure", plan.structure],
        ["bits per item", plan.bits_per_item],
        ["bytes", plan.bytes],
        ["missed at near", plan.false_negative],
        ["called near at far", plan.false_positive],
        ["cache lines per query", plan.cache_lines],
        ["hash evaluations", plan.hash_evaluations],
      ];
  const said = (value) => (typeof value === "number" ? value.toLocaleString("en", { maximumSignificantDigits: 4 }) : String(value));
  const fact = ([name, value]) => {
    const number = element("dd", {}, said(value));
    number.dataset.value = value;
    number.dataset.name = name;
    return element("div", {}, element("dt", {}, name), number);
  };
  byId("plan-facts").replaceChildren(...facts.map(fact));
  byId("plan-chart").replaceChildren(...(svg ? [markup(svg)] : []));
  byId("plan-words").textContent = words;
  byId("plan-command").textContent = command;
  byId("plan-python").textContent = python;
  byId("plan-rust").textContent = rust;
}

for (const name of ["near", "far"]) {
  const [field, range] = [byId(`plan-${name}`), byId(`plan-${name}-range`)];
  range.addEventListener("input", () => (field.value = range.value));
  field.addEventListener("input", () => (range.value = field.value));
}
byId("plan-capacity-range").addEventListener("input", (event) => {
  byId("plan-capacity").value = Number((10 ** Number(event.target.value)).toPrecision(2));
});
metric.addEventListener("input", choose);
form.addEventListener("input", enter);
form.addEventListener("submit", (event) => event.preventDefault());
