// Two roles: in a page of the site it collects errors; in /look it opens all pages in frames and asks them what they saw.

if (!window.plan) {
  window.seen = [];
  const note = (text) => window.seen.push(String(text).slice(0, 300));
  const error = console.error;
  console.error = (...words) => { note("console: " + words.join(" ")); error(...words); };
  window.addEventListener("unhandledrejection", (event) => note("promise: " + event.reason));
  window.addEventListener("error", (event) => {
    const from = event.target;
    note(from && from !== window ? "did not load: " + (from.src || from.href) : "script: " + event.message);
  }, true);
} else {
  window.addEventListener("load", lookAtAll);
}

const VIEWS = [{ width: 400, mode: "light" }, { width: 1400, mode: "dark" }];
const AT_ONCE = 4;
const LEAST_CONTRAST = 4.5;

async function lookAtAll() {
  const report = [];
  for (const view of VIEWS) {
    localStorage.setItem("mode", view.mode);
    localStorage.setItem("theme", view.mode);
    const left = [...window.plan.pages];
    const worker = async () => { while (left.length) report.push(await look(left.shift(), view)); };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  }
  if (window.plan.pages.includes("search.html")) report.push(await look("search.html?q=" + window.plan.search, VIEWS[1], searched));
  await fetch("/report", { method: "POST", body: JSON.stringify(report) });
}

async function look(page, view, more) {
  const frame = document.createElement("iframe");
  frame.style = `width: ${view.width}px; height: 900px; border: 0`;
  frame.src = "/" + page;
  const faults = [];
  try {
    await new Promise((resolve, reject) => {
      frame.onload = resolve;
      setTimeout(() => reject(new Error("not loaded within 30 s")), 30000);
      document.body.append(frame);
    });
    const inside = frame.contentDocument;
    for (const image of inside.images) image.loading = "eager";
    await Promise.all([...inside.images].map((image) => image.decode().catch(() => faults.push("broken image " + image.src))));
    if (more) await more(frame.contentWindow, faults);
    faults.push(...frame.contentWindow.seen, ...requests(frame.contentWindow), ...layout(frame.contentWindow, view));
  } catch (error) {
    faults.push(String(error));
  }
  frame.remove();
  return { page, width: view.width, faults };
}

function requests(inside) {
  const names = inside.performance.getEntriesByType("resource").map((entry) => entry.name);
  return names.filter((name) => !name.startsWith(location.origin) && !name.startsWith("data:")).map((name) => "asks " + name);
}

function layout(inside, view) {
  const faults = [];
  const root = inside.document.documentElement;
  if (root.scrollWidth > view.width + 1) faults.push(`is ${root.scrollWidth} px wide`);
  if (root.dataset.theme !== view.mode) faults.push(`is ${root.dataset.theme}, not ${view.mode}`);
  const worst = new Map();
  for (const element of inside.document.querySelectorAll("article :is(h1, h2, h3, p, li, td, th, dt, a, code, span)")) {
    if (![...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    const style = inside.getComputedStyle(element);
    if (style.visibility === "hidden" || !element.getClientRects().length || element.classList.contains("headerlink")) continue;
    const contrast = ratio(colour(style.color), background(element, inside));
    const kind = `${element.tagName.toLowerCase()}.${element.className}`.slice(0, 40);
    if (contrast < LEAST_CONTRAST) worst.set(kind, Math.min(contrast, worst.get(kind) ?? 99));
  }
  for (const [kind, contrast] of worst) faults.push(`${view.mode}: contrast of ${kind} is ${contrast.toFixed(1)}`);
  return faults;
}

async function searched(inside, faults) {
  for (let k = 0; k < 100; k++) {
    if (inside.document.querySelectorAll("#search-results li a").length) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  faults.push("the search finds nothing");
}

function colour(text) {
  const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  context.fillStyle = text;
  context.fillRect(0, 0, 1, 1);
  return [...context.getImageData(0, 0, 1, 1).data];
}

function background(element, inside) {
  for (let at = element; at; at = at.parentElement) {
    const found = colour(inside.getComputedStyle(at).backgroundColor);
    if (found[3] > 250) return found;
  }
  return [255, 255, 255, 255];
}

function ratio(one, other) {
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}
