// Convenience on top of the inspector's pages. Every page reads and works without this script.
"use strict";

const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const one = (selector, root = document) => root.querySelector(selector);
document.documentElement.classList.add("scripted");

function showStatus(text) {
  const status = one("#status");
  if (!status) return;
  status.textContent = text;
  status.classList.add("shown");
  clearTimeout(showStatus.timer);
  showStatus.timer = setTimeout(() => status.classList.remove("shown"), 2000);
}

// --- highlight the item of a text, and the text of an item -----------------------------------------------------------

let highlighted = "";

function highlight(event) {
  const target = event.target instanceof Element ? event.target.closest("[data-item]") : null;
  const number = target ? target.dataset.item : "";
  if (number === highlighted) return;
  highlighted = number;
  all(".lit").forEach((each) => each.classList.remove("lit"));
  if (!number) return;
  for (const each of all(`[data-item="${CSS.escape(number)}"]`)) {
    each.classList.add("lit");
    if (each !== target) scrollPaneTo(each);
  }
}

// Only the other pane scrolls; the page itself stays where it is.
function scrollPaneTo(element) {
  const pane = element.closest(".beside > section");
  if (!pane || pane.scrollHeight <= pane.clientHeight) return;
  const [box, frame] = [element.getBoundingClientRect(), pane.getBoundingClientRect()];
  if (box.top < frame.top || box.bottom > frame.bottom) pane.scrollTop += box.top - frame.top - frame.height / 3;
}

document.addEventListener("mouseover", highlight);
document.addEventListener("focusin", highlight);

// --- copy, light and dark --------------------------------------------------------------------------------------------

async function copy(text) {
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
  showStatus("Copied");
}

function switchTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/ui; max-age=31536000; samesite=lax`;
}

// --- parts of a page that are loaded again ---------------------------------------------------------------------------

// Fetch a page and replace one part of this page by the same part of that one.
async function replacePart(selector, address, options = {}) {
  const response = await fetch(address, options);
  if (new URL(response.url).pathname === "/ui/sign-in") return location.assign(response.url);
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const [target, fresh] = [one(selector), one(selector, page)];
  if (fresh) target.replaceChildren(...fresh.childNodes);
  else target.textContent = one("main .lead, main li", page)?.textContent || "Something went wrong.";
}

let request;

// The result of a form with data-live follows while somebody types.
async function submitLive(form) {
  const fields = [...new FormData(form)].filter(([, value]) => value !== "");
  const address = `${form.getAttribute("action").split("?")[0]}?${new URLSearchParams(fields)}`;
  if (request) request.abort();
  request = new AbortController();
  one(form.dataset.live).setAttribute("aria-busy", "true");
  try {
    await replacePart(form.dataset.live, address, { signal: request.signal });
    history.replaceState(null, "", address);
  } catch (error) {
    if (error.name === "AbortError") return;
    showStatus("The service does not answer");
  }
  one(form.dataset.live).removeAttribute("aria-busy");
}

let typing;

document.addEventListener("input", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form) return;
  clearTimeout(typing);
  typing = setTimeout(() => submitLive(form), 250);
});
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-live]");
  if (!form) return;
  event.preventDefault();
  submitLive(form);
});

// The list of contexts is polled, not streamed: an idle stream per open tab costs the service more than a request now and
// then. A hidden tab asks nothing, and a list in which somebody moves with the keyboard is left alone.
const polled = one("[data-poll-seconds]");

function poll() {
  if (document.hidden || polled.contains(document.activeElement)) return;
  replacePart(`#${polled.id}`, location.href).catch(() => {});
}

if (polled) setInterval(poll, 1000 * Number(polled.dataset.pollSeconds));

// A message about a form is shown once: a bookmark or a reload must not show it again.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  ["done", "seal"].forEach((name) => here.searchParams.delete(name));
  history.replaceState(null, "", here);
}

one(".top nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

// --- keys and clicks -------------------------------------------------------------------------------------------------

let row = -1;

function moveRow(by) {
  const rows = all("tr[data-row], li.item");
  if (!rows.length) return;
  row = Math.min(rows.length - 1, Math.max(0, row + by));
  rows.forEach((each, n) => each.classList.toggle("at", n === row));
  const link = one("a", one("td.main", rows[row]) || rows[row]);
  (link || rows[row]).focus();
}

const KEYS = {
  "/": () => one(".search input").focus(),
  t: switchTheme,
  j: () => moveRow(1),
  k: () => moveRow(-1),
};

document.addEventListener("keydown", (event) => {
  const inField = event.target.closest?.("input, textarea, select");
  if (inField || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

document.addEventListener("click", (event) => {
  const clicked = (selector) => event.target.closest?.(selector);
  if (clicked("[data-copy-of]")) copy(one(`#${clicked("[data-copy-of]").dataset.copyOf}`).content.textContent);
  else if (clicked("[data-theme-switch]")) switchTheme();
});
