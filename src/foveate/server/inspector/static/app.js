// What scripts add to the inspector: every page reads and works without them.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);
document.documentElement.classList.add("scripted");

function say(text) {
  const said = one("#said");
  if (!said) return;
  said.textContent = text;
  said.classList.add("shown");
  clearTimeout(say.later);
  say.later = setTimeout(() => said.classList.remove("shown"), 2000);
}

// --- hovering: text shows its item, an item its text -----------------------------------------------------------------

let lit = "";

function light(event) {
  const place = event.target instanceof Element ? event.target.closest("[data-item]") : null;
  const number = place ? place.dataset.item : "";
  if (number === lit) return;
  lit = number;
  all(".lit").forEach((each) => each.classList.remove("lit"));
  if (!number) return;
  for (const each of all(`[data-item="${CSS.escape(number)}"]`)) {
    each.classList.add("lit");
    if (each !== place) bring(each);
  }
}

// The other pane turns to what belongs together; the page itself stays where it is.
function bring(element) {
  const pane = element.closest(".beside > section");
  if (!pane || pane.scrollHeight <= pane.clientHeight) return;
  const [here, around] = [element.getBoundingClientRect(), pane.getBoundingClientRect()];
  if (here.top < around.top || here.bottom > around.bottom) pane.scrollTop += here.top - around.top - around.height / 3;
}

document.addEventListener("mouseover", light);
document.addEventListener("focusin", light);

// --- copying ---------------------------------------------------------------------------------------------------------

async function copy(text, what) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  say(`Copied as ${what}`);
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl(button) {
  const around = button.closest("[data-origin]");
  const token = around.hasAttribute("data-token") ? ' -H "Authorization: Bearer $FOVEATE_TOKEN"' : "";
  return `curl -sS${token} ${quoted(around.dataset.origin + button.dataset.href)}`;
}

async function copied(button, event) {
  const how = button.dataset.copy;
  if (how === "curl") return copy(curl(button), "curl");
  if (event.ctrlKey || event.metaKey || event.shiftKey) return; // opened in another tab, as any link
  event.preventDefault();
  const answer = await fetch(button.href);
  if (!answer.ok) return say("This page cannot be copied just now");
  const text = await answer.text();
  return copy(how === "json" ? `${JSON.stringify(JSON.parse(text), null, 2)}\n` : text, how === "json" ? "JSON" : "Markdown");
}

// --- light and dark --------------------------------------------------------------------------------------------------

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/ui; max-age=31536000; samesite=lax`;
}

// --- parts of a page that follow a form ------------------------------------------------------------------------------

let asking;

// What stands at its own value (data-own) need not be said.
const isSaid = (form, name, value) => value !== "" && form.elements.namedItem(name)?.dataset?.own !== value;

// Parts of the form that depend on the rest of it (data-renew) follow, too: not the one that is being changed, and not
// by one that has nothing to show yet (data-waiting).
function renew(form, page, changed) {
  all("[data-renew]", form).forEach((each) => {
    const fresh = one(`#${CSS.escape(each.id)}:not([data-waiting])`, page);
    if (fresh && !each.contains(changed)) each.replaceWith(fresh);
  });
}

async function follow(form, changed = null) {
  const target = one(form.dataset.live);
  const fields = [...new FormData(form)].filter(([name, value]) => isSaid(form, name, value));
  const address = `${form.getAttribute("action").split("?")[0]}?${new URLSearchParams(fields)}`;
  if (asking) asking.abort();
  asking = new AbortController();
  target.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { signal: asking.signal });
    if (new URL(answer.url).pathname === "/ui/sign-in") return location.assign(answer.url);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = one(form.dataset.live, page);
    if (fresh) target.replaceChildren(...fresh.childNodes);
    else target.textContent = one("main .lead, main li", page)?.textContent || "Something went wrong.";
    renew(form, page, changed);
    all(".copies", page).slice(0, 1).forEach((fresh) => one(".copies")?.replaceWith(fresh));
    history.replaceState(null, "", address);
  } catch (error) {
    if (error.name !== "AbortError") say("The service does not answer");
    else return;
  }
  target.removeAttribute("aria-busy");
}

const later = (run, wait) => {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...given), wait);
  };
};
const followLater = later(follow, 250);

document.addEventListener("input", (event) => {
  const field = event.target;
  const shown = field.type === "range" ? one(`output[for="${field.id}"]`) : null;
  if (shown) shown.textContent = field.value;
  const form = field.closest("form[data-live]");
  if (form) followLater(form, field);
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form || event.submitter?.hasAttribute("formaction")) return;
  event.preventDefault();
  follow(form);
});

// --- palette ---------------------------------------------------------------------------------------------------------

const palette = one("#palette");

function options() {
  return all("[role=option]:not([hidden])", palette);
}

function select(option) {
  all("[role=option]", palette).forEach((each) => each.setAttribute("aria-selected", String(each === option)));
  if (!option) return;
  option.id ||= `option-${all("[role=option]", palette).indexOf(option)}`;
  one("input", palette).setAttribute("aria-activedescendant", option.id);
  option.scrollIntoView({ block: "nearest" });
}

function openPalette() {
  if (!palette || palette.open) return;
  palette.showModal();
  const input = one("input", palette);
  input.value = "";
  narrow("");
  input.focus();
}

function narrow(words) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  all("[role=option].found", palette).forEach((each) => each.remove());
  all("[role=option]", palette).forEach((each) => {
    each.hidden = !wanted.every((word) => each.textContent.toLowerCase().includes(word));
  });
  select(options()[0]);
}

const find = later(async (words) => {
  const input = one("input", palette);
  const address = new URL(input.dataset.find, location.href);
  address.searchParams.set("q", words);
  const found = await fetch(address).then((answer) => (answer.ok ? answer.json() : null), () => null);
  if (!found || input.value.trim() !== words) return;
  all("[role=option].found", palette).forEach((each) => each.remove());
  for (const hit of found.found) {
    const option = document.createElement("li");
    option.className = "found";
    option.setAttribute("role", "option");
    option.dataset.href = hit.href;
    const name = document.createElement("b");
    const what = document.createElement("span");
    name.textContent = hit.title;
    what.textContent = hit.what;
    option.append(name, " ", what);
    one("ul", palette).append(option);
  }
  if (!options().some((each) => each.getAttribute("aria-selected") === "true")) select(options()[0]);
}, 150);

palette?.addEventListener("input", (event) => {
  const words = event.target.value.trim();
  narrow(words);
  if (words) find(words);
});
palette?.addEventListener("keydown", (event) => {
  const shown = options();
  const at = shown.findIndex((each) => each.getAttribute("aria-selected") === "true");
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step && shown.length) {
    event.preventDefault();
    select(shown[(at + step + shown.length) % shown.length]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    const chosen = shown[Math.max(at, 0)];
    if (chosen) location.assign(chosen.dataset.href);
  }
});

// What was just done is said once: a bookmark or a reload must not say it again.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  ["done", "seal"].forEach((name) => here.searchParams.delete(name));
  history.replaceState(null, "", here);
}

one(".top nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

// --- keys and clicks -------------------------------------------------------------------------------------------------

let row = -1;

function step(by) {
  const rows = all("tr[data-row], li.item");
  if (!rows.length) return;
  row = Math.min(rows.length - 1, Math.max(0, row + by));
  rows.forEach((each, n) => each.classList.toggle("at", n === row));
  const link = one("a", one("td.main", rows[row]) || rows[row]);
  (link || rows[row]).focus();
}

const GO = { c: "contexts", w: "what-if", s: "sessions", r: "records", g: "graph", t: "tasks", d: "code", m: "metrics", h: "health" };
let going = false;

const KEYS = {
  "/": () => one(".search input").focus(),
  "?": () => location.assign("/ui/help"),
  t: switchTheme,
  j: () => step(1),
  k: () => step(-1),
  g: () => {
    going = true;
    setTimeout(() => (going = false), 1200);
  },
};

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    return openPalette();
  }
  const typing = event.target.closest?.("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (going && GO[event.key]) {
    const link = one(`.top nav a[href^="/ui/${GO[event.key]}"]`);
    return link && location.assign(link.href);
  }
  if (KEYS[event.key]) {
    event.preventDefault();
    KEYS[event.key]();
  }
});

document.addEventListener("click", (event) => {
  const at = (selector) => event.target.closest?.(selector);
  if (at("[data-copy]")) copied(at("[data-copy]"), event);
  else if (at("[data-copy-of]")) copy(one(`#${at("[data-copy-of]").dataset.copyOf}`).content.textContent, "text");
  else if (at("[data-theme-switch]")) switchTheme();
  else if (at("[data-opens=palette]")) openPalette();
  else if (at("#palette [role=option]")) location.assign(at("#palette [role=option]").dataset.href);
  else if (event.target === palette) palette.close();
});
