// Questions to the program, and the few elements that every tab makes.

const KEY = "nearset-session";

/** Begins a session with the token in the address, which is then taken out of it. */
export async function begin() {
  const token = location.hash.slice(1);
  if (token) {
    history.replaceState(null, "", location.pathname);
    const { session } = await ask("session", { token });
    sessionStorage.setItem(KEY, session);
  }
}

/** Asks the program; what it can't do, or refuses, is an error with the reason as its message. */
export async function ask(question, body = {}) {
  const response = await fetch(`/api/${question}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Nearset-Session": sessionStorage.getItem(KEY) ?? "" },
    body: JSON.stringify(body),
  });
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  return answer;
}

/** An element with properties, attributes (those with a dash) and children. Texts are texts, never markup. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "scope") made.setAttribute(key, value);
    else made[key] = value;
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/** Markup that the program made, every text in it escaped there. */
export function markup(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

export const byId = (id) => document.getElementById(id);

const alarm = byId("error");

/** Shows an error, or takes it away. */
export function tell(error) {
  alarm.hidden = !error;
  alarm.textContent = error?.message ?? "";
}

/** Only the last of several questions that are under way is answered. */
export function latest(work) {
  let asked = 0;
  return async (...given) => {
    const mine = ++asked;
    try {
      await work(() => mine === asked, ...given);
      if (mine === asked) tell(null);
    } catch (error) {
      if (mine === asked) tell(error);
    }
  };
}

/** Waits until nothing has come for a while. */
export function quiet(work, milliseconds) {
  let timer;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, milliseconds);
  };
}

/** Makes a button copy the text of an element. */
export function copies(button, source) {
  const name = button.textContent;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = name), 1200);
  });
}
