// Refreshes a page: the server sends a tick when something changed, and the live regions are
// fetched and patched in place, so that what stays the same is not loaded, drawn or animated anew.
// A region with selected text or the focus is left alone until the user is done.
const word = document.getElementById("live");
const store = document.getElementById("store");
const button = document.getElementById("hold");
let stream = null;
let held = false;
let busy = false;
let again = false;
let fresh = Date.now();
// For how long the last cards say that they are gone, in milliseconds.
const GONE_FOR = 10000;
// The region whose rows are to be taken as they come, once.
let renewed = null;

function say(text, lost) {
  if (word.textContent !== text) word.textContent = text;
  word.classList.toggle("lost", Boolean(lost));
}

// Whether the store takes writes; nothing, if it is not known.
function sayStore(text, away) {
  if (store.textContent !== text) store.textContent = text;
  store.classList.toggle("lost", Boolean(away));
}

function tick({ data }) {
  const since = JSON.parse(data).store_away_since;
  sayStore(since ? store.dataset.away + clockTime(since) : store.dataset.ready, since);
  refresh();
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

// Rows and cards keep their places while the page is open. What came up takes the place of what is
// gone, and a place that no one takes stays empty; at the end of the cards, only for a while. The rest
// of what came up follows the cards of the decisions; in other lists, and while a region is in use, it
// is counted in a line, with what the server left out.
function keepSlots(old, wanted, isHeld) {
  const rows = [...old.querySelectorAll("tbody > tr, .gallery > li, .needs > li")];
  const body = wanted.querySelector("tbody, .gallery, .needs");
  if (!body) return;
  // What comes back to its empty place is new for as long as it is not shown there.
  const known = new Set(rows.filter((row) => !isHeld || row.className !== "quiet").map((row) => row.id));
  const found = new Map([...body.children].map((row) => [row.id, row]));
  const came = [...found.values()].filter((row) => !known.has(row.id));
  if (!isHeld) {
    const slots = rows.map((row) => found.get(row.id) || came.shift() || emptied(row, wanted.dataset.slots));
    const isNeeds = body.matches(".needs");
    body.replaceChildren(...slots, ...(isNeeds || !rows.length ? came.splice(0) : []));
    // Nothing moves: the region keeps its height.
    while (isNeeds && Date.now() - body.lastChild?.dataset.gone > GONE_FOR) body.lastChild.remove();
  }
  const line = wanted.querySelector(".newcomers");
  const left = came.length + Number(line.dataset.newer ?? 0);
  line.hidden = !left;
  line.firstChild.textContent = line.textContent.replace("{}", left);
}

function emptied(row, text) {
  const empty = row.cloneNode(true);
  for (const cell of empty.querySelectorAll("td, .picture")) cell.textContent = "";
  // An empty line of a card is as high as one with a text.
  for (const line of empty.querySelectorAll(".title, p")) line.textContent = "\u00a0";
  for (const why of empty.querySelectorAll("td.why")) why.textContent = text;
  if (row.matches(".needs > li")) empty.textContent = text;
  empty.className = "quiet";
  empty.dataset.gone ??= Date.now();
  return empty;
}

// The title of the tab says how many decisions there are, also in the background.
const title = document.title;
function count(page) {
  const needed = page.querySelector("[data-needed]")?.dataset.needed ?? 0;
  document.title = Number(needed) ? `(${needed}) ${title}` : title;
}

function patchCount(old, wanted) {
  const [shown, next] = [old, wanted].map((region) => region.querySelector("[data-needed]"));
  if (shown && next) patch(shown, next);
}

// A region, and each place of a card in it, keeps the height it once had, so that what is below it
// does not move up and down.
function patchSteadily(region, wanted) {
  const parts = () => [region, ...region.querySelectorAll(".needs > li")];
  const height = (part) => part.getBoundingClientRect().height;
  const heights = parts().map(height);
  patch(region, wanted);
  for (const [n, part] of parts().entries()) {
    if (height(part) < heights[n]) part.style.minHeight = `${heights[n]}px`;
  }
}

// The query of the page, with the newest entry that is shown: later ones wait to be asked for.
function wantedSearch() {
  const region = document.querySelector("[data-through]");
  if (!region || region.id === renewed) return location.search;
  const query = new URLSearchParams(location.search);
  query.set("through", region.dataset.through);
  return `?${query}`;
}

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  try {
    const path = word.dataset.regions || location.pathname;
    const answer = await fetch(path + wantedSearch(), { cache: "no-store" });
    if (answer.status === 404) close();
    if (!answer.ok) throw new Error(String(answer.status));
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    count(next);
    const pointedAt = document.querySelector("[data-live=steady]:hover");
    const top = pointedAt?.getBoundingClientRect().top;
    for (const region of next.querySelectorAll("[data-live]")) {
      const old = document.getElementById(region.id);
      if (!old) continue;
      const isRenewed = region.id === renewed;
      const isHeld = inUse(old) && !isRenewed;
      // Decisions keep their places even when those that came up are asked for.
      const mayMove = isRenewed && !region.querySelector(".needs");
      if ("slots" in region.dataset && !mayMove) keepSlots(old, region, isHeld);
      // How many decisions there are is said even while the cards stay as they are.
      if (isHeld) patchCount(old, region); else patchSteadily(old, region);
    }
    renewed = null;
    // What grew above it does not push it away.
    if (pointedAt) scrollBy(0, pointedAt.getBoundingClientRect().top - top);
    fresh = Date.now();
    say(held ? word.dataset.held + freshAt() : word.dataset.fresh);
  } catch (error) {
    // A server that started anew may not know what the page is about. It is looked for now and then.
    if (error.message === "404") say(word.dataset.gone, true); else lost();
  }
  setTimeout(() => { busy = false; if (again) { again = false; refresh(); } }, 500);
}

// A time as everywhere on the page: UTC.
function freshAt() {
  return clockTime(new Date(fresh).toISOString());
}

function clockTime(time) {
  return `${time.slice(11, 19)}Z`;
}

function lost() {
  say(word.dataset.lost + freshAt(), true);
}

function open() {
  if (stream || held || document.hidden) return;
  stream = new EventSource("/page/ticks");
  stream.addEventListener("tick", tick);
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
  if (held) { close(); say(word.dataset.held + freshAt()); } else { open(); }
});
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) { open(); return; }
  close();
  // No one sees how what is left moves together.
  for (const gone of document.querySelectorAll(".needs > .quiet")) gone.remove();
  forgetHeights();
});
// In the background, the title is kept up to date now and then; and what is gone may come back.
setInterval(() => {
  if (!document.hidden) open();
  else if (!held && document.querySelector("[data-needed]")) refresh();
}, 30000);
// At another width, every height is another one.
let width = innerWidth;
addEventListener("resize", () => {
  if (innerWidth === width) return;
  width = innerWidth;
  forgetHeights();
});
function forgetHeights() {
  for (const part of document.querySelectorAll("[data-live], .needs > li")) part.style.minHeight = "";
}
// What came up is shown without a jump to the top: rows in place of the old ones.
document.addEventListener("click", (event) => {
  const link = event.target.closest(".newcomers a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  renewed = link.closest("[data-live]").id;
  refresh();
});
// On a phone the navigation shows where one is.
const here = document.querySelector("header nav [aria-current]");
if (here) {
  const nav = here.parentElement;
  nav.scrollLeft = here.offsetLeft - nav.offsetLeft - (nav.clientWidth - here.offsetWidth) / 2;
}
count(document);
addEventListener("pagehide", close);
addEventListener("pageshow", open);
open();
