// Refreshes a page: the server sends a tick when something changed, and the live regions are
// fetched and patched in place, so that what stays the same is not loaded, drawn or animated anew.
// A region with selected text or the focus is left alone until the user is done.
const word = document.getElementById("live");
const button = document.getElementById("hold");
let stream = null;
let held = false;
let busy = false;
let again = false;
let fresh = Date.now();

function say(text, lost) {
  if (word.textContent !== text) word.textContent = text;
  word.classList.toggle("lost", Boolean(lost));
}

// What would move under the pointer, or close what someone has opened, waits.
function inUse(region) {
  if (region.contains(document.activeElement)) return true;
  if (region.dataset.live === "steady" && region.matches(":hover")) return true;
  const selection = document.getSelection();
  return Boolean(selection) && !selection.isCollapsed && region.contains(selection.anchorNode);
}

function isRow(node) {
  return node.nodeName === "TR";
}

function isSame(node, wanted) {
  return node.nodeName === wanted.nodeName && (isRow(node) || (node.id || "") === (wanted.id || ""));
}

// Makes the content of one element that of another. Children with an id keep their element wherever
// they move; the others are matched by their place. So are the rows of a table: they are equally
// high and are filled anew, because a row that moved would move all below it.
function patch(element, wanted) {
  const keeps = (name) => name === "style" || (name === "open" && element.nodeName === "DETAILS");
  for (const { name } of [...element.attributes]) {
    if (!wanted.hasAttribute(name) && !keeps(name)) element.removeAttribute(name);
  }
  for (const { name, value } of wanted.attributes) {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  let place = element.firstChild;
  for (const child of [...wanted.childNodes]) {
    const known = child.id && !isRow(child) ? element.querySelector(`:scope > #${CSS.escape(child.id)}`) : place;
    if (!known || !isSame(known, child)) { element.insertBefore(child, place); continue; }
    if (known === place) place = place.nextSibling; else element.insertBefore(known, place);
    if (known.nodeType === Node.ELEMENT_NODE) patch(known, child);
    else if (known.nodeValue !== child.nodeValue) known.nodeValue = child.nodeValue;
  }
  while (place) { const next = place.nextSibling; place.remove(); place = next; }
}

// Rows keep their places while the page is open: what came up is counted in a line instead, and what
// is gone leaves its place empty.
function keepSlots(old, wanted) {
  const rows = [...old.querySelectorAll("tbody > tr")];
  const body = wanted.querySelector("tbody");
  if (!rows.length || !body) return;
  const came = new Map([...body.children].map((row) => [row.id, row]));
  body.replaceChildren(...rows.map((row) => came.get(row.id) || emptied(row)));
  const count = came.size - rows.filter((row) => came.has(row.id)).length;
  const line = wanted.querySelector(".newcomers");
  line.hidden = !count;
  line.firstChild.textContent = line.textContent.replace("{}", count);
}

function emptied(row) {
  const empty = row.cloneNode(true);
  for (const cell of empty.querySelectorAll("td")) cell.textContent = "";
  empty.className = "quiet";
  return empty;
}

// A region keeps the height it once had, so that what is below it does not move up and down.
function patchSteadily(region, wanted) {
  const height = region.offsetHeight;
  patch(region, wanted);
  if (region.offsetHeight < height) region.style.minHeight = `${height}px`;
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const path = word.dataset.regions || location.pathname;
    const answer = await fetch(path + location.search, { cache: "no-store" });
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const pointedAt = document.querySelector("[data-live=steady]:hover");
    const top = pointedAt?.getBoundingClientRect().top;
    for (const region of next.querySelectorAll("[data-live]")) {
      const old = document.getElementById(region.id);
      if (!old || inUse(old)) continue;
      if ("slots" in region.dataset) keepSlots(old, region);
      patchSteadily(old, region);
    }
    // What grew above it does not push it away.
    if (pointedAt) scrollBy(0, pointedAt.getBoundingClientRect().top - top);
    fresh = Date.now();
    say(word.dataset.fresh);
  } catch {
    lost();
  }
  setTimeout(() => { busy = false; if (again) { again = false; refresh(); } }, 500);
}

function lost() {
  say(word.dataset.lost + new Date(fresh).toLocaleTimeString(), true);
}

function open() {
  if (stream || held || document.hidden) return;
  stream = new EventSource("/page/ticks");
  stream.addEventListener("tick", refresh);
  stream.addEventListener("open", refresh);
  stream.addEventListener("error", () => {
    lost();
    if (stream && stream.readyState === EventSource.CLOSED) { close(); setTimeout(open, 5000); }
  });
}

function close() {
  if (stream) stream.close();
  stream = null;
}

const pause = button.textContent;
button.hidden = false;
button.addEventListener("click", () => {
  held = !held;
  button.textContent = held ? button.dataset.resume : pause;
  if (held) { close(); say(word.dataset.held + new Date(fresh).toLocaleTimeString()); } else { open(); }
});
document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
// At another width, every height is another one.
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  for (const region of document.querySelectorAll("[data-live]")) region.style.minHeight = "";
});
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
