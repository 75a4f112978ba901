"use strict";
// All that the page does in a browser beside links and forms, none of which needs it: live values, plots, copying.

// -- live values: a stream says that something is new, and the same address is asked for again ------------------

const said = (text) => { const place = document.getElementById("live"); if (place) place.textContent = text; };
const pause = document.getElementById("pause");
let stream = null;
let paused = false;
let missed = false;

// A reader who types, marks text or has opened something must not lose it.
function busy() {
  const content = document.getElementById("content");
  const selection = document.getSelection();
  return paused || document.hidden || document.activeElement?.matches("#content input:not([type=hidden]), #content select") ||
    (selection && !selection.isCollapsed && content.contains(selection.anchorNode));
}

function look() {
  missed = busy();
  if (!missed) htmx.trigger("#content", "changed");
}

function connect() {
  if (stream || paused || document.hidden || !document.querySelector("[data-live]")) return;
  stream = new EventSource("/live");
  stream.onopen = () => said("Live");
  stream.onerror = () => said(stream?.readyState === EventSource.CLOSED ? "Not live: too many look, or the connection was lost" : "Connecting");
  stream.addEventListener("changed", look);
}

function disconnect() {
  stream?.close();
  stream = null;
}

if (pause && window.htmx) {
  pause.parentElement.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", String(paused));
    if (paused) { disconnect(); said("Paused"); } else { connect(); look(); }
  });
  // A browser has six connections to a host; tabs that nobody sees must not hold them.
  document.addEventListener("visibilitychange", () => { if (document.hidden) disconnect(); else { connect(); look(); } });
  addEventListener("pagehide", disconnect);
  addEventListener("pageshow", connect);
  document.addEventListener("focusout", () => { if (missed) setTimeout(look, 0); });
  connect();
}

// What was open, scrolled to and focused stays so where a view is replaced by a newer one.
const FOCUSABLE = "#content a, #content button, #content summary, #content input, #content [tabindex]";
let kept = null;
document.addEventListener("htmx:beforeSwap", () => {
  const focused = document.activeElement;
  kept = {
    open: [...document.querySelectorAll("#content details")].map((each) => each.open),
    scroll: [...document.querySelectorAll("#content .scroll")].map((each) => each.scrollLeft),
    at: [...document.querySelectorAll(FOCUSABLE)].indexOf(focused),
    id: focused?.id,
    caret: focused?.selectionStart,
  };
});
document.addEventListener("htmx:afterSettle", () => {
  if (!kept) return;
  const { open, scroll, at, id, caret } = kept;
  kept = null;
  document.querySelectorAll("#content details").forEach((each, number) => { each.open = open[number] ?? each.open; });
  document.querySelectorAll("#content .scroll").forEach((each, number) => { each.scrollLeft = scroll[number] ?? 0; });
  if (at >= 0 || id === "filter") {
    const found = (id && document.getElementById(id)) || document.querySelectorAll(FOCUSABLE)[at];
    found?.focus({ preventScroll: true });
    if (caret != null && found?.setSelectionRange) found.setSelectionRange(caret, caret);
  }
  dress();
});

// -- copying ------------------------------------------------------------------------------------------------

function button(words, text) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "copy";
  made.textContent = words;
  made.addEventListener("click", async () => {
    await navigator.clipboard.writeText(text());
    made.textContent = "Copied";
    setTimeout(() => { made.textContent = words; }, 2000);
  });
  return made;
}

const cells = (table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.innerText.trim()).join("\t")).join("\n");

// -- the moment: its words follow the slider -------------------------------------------------------------------

const slider = document.getElementById("t");
slider?.addEventListener("input", () => {
  const words = `${new Date(slider.value * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  slider.labels[0].textContent = words;
  slider.setAttribute("aria-valuetext", words);
});
slider?.addEventListener("change", (event) => { if (!event.target.dataset.keys) slider.form.requestSubmit(); });
slider?.addEventListener("keydown", () => { slider.dataset.keys = "1"; });
slider?.addEventListener("pointerdown", () => { delete slider.dataset.keys; });

// On a narrow screen the navigation is one row, which scrolls: the view that is shown must be in sight.
document.querySelector(".views [aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });

// -- plots: the numbers stand in the page, in `data-plot` --------------------------------------------------------

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// Not the colours that have a meaning.
const LINES = [["--line-1", []], ["--line-2", []], ["--line-3", []], ["--line-1", [6, 3]], ["--line-2", [6, 3]], ["--line-3", [6, 3]]];

function draw(place) {
  const { times, unit, series, bars } = JSON.parse(place.dataset.plot);
  const axis = { stroke: style("--soft"), grid: { stroke: style("--line"), width: 1 }, ticks: { stroke: style("--line"), width: 1 } };
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const written = (value) => (value == null ? "-" : `${value.toLocaleString("en")}${unit && ` ${unit}`}`);
  const lines = series.map((each, number) => {
    const [colour, dash] = each.kind ? [`--${each.kind}`, []] : LINES[number % LINES.length];
    const drawn = bars ? { paths: uPlot.paths.bars({ size: [0.9, 64] }), fill: style(colour), points: { show: false } } : { dash, points: { show: false } };
    return { label: each.label, stroke: style(colour), width: bars ? 0 : 2, value: (_, value) => written(value), ...drawn };
  });
  const mark = Number(place.dataset.guarantee);
  const hooks = { drawAxes: [(plot) => {
    if (!mark) return;
    const y = plot.valToPos(mark, "y", true);
    plot.ctx.save();
    plot.ctx.strokeStyle = style("--ink");
    plot.ctx.beginPath();
    plot.ctx.moveTo(plot.bbox.left, y);
    plot.ctx.lineTo(plot.bbox.left + plot.bbox.width, y);
    plot.ctx.stroke();
    plot.ctx.restore();
  }] };
  place.replaceChildren();
  const size = { width: place.clientWidth, height: place.classList.contains("low") ? 180 : 280 };
  const stamp = (value) => (value == null ? "-" : `${new Date(value * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`);
  const clock = (value, before) => {
    const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);
    const time = new Date(value * 1000).toISOString().slice(11, times.at(-1) - times[0] < 600 ? 19 : 16);
    return before !== undefined && day(value) === day(before) ? time : `${time}\n${day(value)}`;
  };
  const options = {
    ...size, hooks, legend: { markers: { dash: (_, at) => (lines[at - 1]?.dash?.length ? "dashed" : "solid") } }, tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: { y: { range: (_, low, high) => [Math.min(low ?? 0, 0), Math.max(high ?? 0, mark * 1.1 || 1)] } },
    axes: [{ ...axis, font, space: 80, values: (_, values) => values.map((value, number) => clock(value, values[number - 1])) }, { ...axis, font, size: 60, values: (_, values) => values.map(written) }],
    series: [{ label: "Time", value: (_, value) => stamp(value) }, ...lines],
  };
  return new uPlot(options, [times, ...series.map((each) => each.values)], place);
}

function plots() {
  if (window.uPlot) for (const place of document.querySelectorAll("[data-plot]")) draw(place);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", plots);
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; plots(); } });

// -- what a new view needs ----------------------------------------------------------------------------------

function dress() {
  plots();
  if (!navigator.clipboard) return;
  for (const text of document.querySelectorAll("#content pre")) text.before(button("Copy", () => text.innerText));
  for (const table of document.querySelectorAll("#content .scroll > table")) {
    if (table.rows.length > 2) table.parentElement.after(button("Copy table", () => cells(table)));
  }
}
dress();
