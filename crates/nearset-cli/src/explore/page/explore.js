// Tabs, and what all of them need to know.

import { ask, begin, byId, copies, tell } from "./ask.js";
import * as duplicates from "./duplicates.js";
import * as plan from "./plan.js";
import * as filter from "./filter.js";

const tabs = [...document.querySelectorAll("[role=tab]")];
const views = { duplicates, plan, filter };

function show(tab) {
  for (const other of tabs) {
    const chosen = other === tab;
    other.setAttribute("aria-selected", String(chosen));
    other.tabIndex = chosen ? 0 : -1;
    const name = other.getAttribute("aria-controls");
    byId(name).hidden = !chosen;
    // Pictures of two tabs must not share the names in them.
    if (!chosen) views[name].leave?.();
  }
  tell(null);
  views[tab.getAttribute("aria-controls")].enter?.();
}

for (const [i, tab] of tabs.entries()) {
  tab.addEventListener("click", () => show(tab));
  tab.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const next = tabs[(i + step + tabs.length) % tabs.length];
    next.focus();
    show(next);
  });
}

for (const button of document.querySelectorAll("[data-copies]")) copies(button, byId(button.dataset.copies));

try {
  await begin();
  const state = await ask("state");
  for (const view of Object.values(views)) view.start(state);
  if (state.corpus.status === "none") show(byId("tab-filter"));
} catch (error) {
  tell(error);
}
