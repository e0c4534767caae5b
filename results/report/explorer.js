"use strict";
(() => {
  const WIDE = 720, LEFT = 120, RIGHT = WIDE - 12, LOW = 1e-6, HIGH = 10;

  const make = (name, attributes = {}, parent = null, text = "") => {
    const svg = ["svg", "line", "rect", "path", "text", "circle", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const short = (value) => Number(value.toPrecision(3)).toString();

  // The cost left over the least, as a share of the start's; null where a run has diverged.
  const left = (scheme, cost) => {
    if (cost === null || !isFinite(cost)) return null;
    const least = scheme.least ?? Math.min(...scheme.costs.flat().filter((c) => c !== null));
    const start = scheme.costs[0][0] - least;
    return start > 0 ? (cost - least) / start : 0;
  };

  // Of least squares each direction shrinks by itself: e (1 - a h)^2k.
  const closed = (scheme, size, k) => {
    let sum = 0;
    scheme.curvature.forEach((h, n) => { sum += scheme.excess[n] * (1 - size * h) ** (2 * k); });
    return sum + scheme.costs[0][0] - scheme.excess.reduce((one, other) => one + other, 0);
  };

  const history = (scheme, size) => {
    const place = scheme.sizes.findIndex((known) => Math.abs(known / size - 1) < 1e-9);
    if (place >= 0) {
      return { costs: scheme.costs[place], verdict: scheme.verdicts[place], recorded: true };
    }
    if (!scheme.curvature) return null;
    const costs = scheme.at.map((k) => closed(scheme, size, k));
    return { costs, verdict: "predicted", recorded: false };
  };

  const explore = (section, data) => {
    const { schemes, iterations } = data;
    const sizes = [...new Set(schemes.flatMap((scheme) => scheme.sizes))].sort((a, b) => a - b);
    if (sizes.length < 2) return;
    const smooth = schemes.every((scheme) => scheme.curvature);
    const ends = [sizes[0] / 2, sizes[sizes.length - 1] * 2].map(Math.log10);
    const across = (size) =>
      LEFT + (Math.log10(size) - ends[0]) / (ends[1] - ends[0]) * (RIGHT - LEFT);
    const shown = new Set(schemes);
    let each = false;

    const slider = section.querySelector("input[type=range]");
    slider.max = smooth ? 400 : sizes.length - 1;
    const span = [Math.log10(sizes[0]), Math.log10(sizes[sizes.length - 1])];
    const chosen = () => {
      if (!smooth) return sizes[Number(slider.value)];
      const raw = 10 ** (span[0] + (span[1] - span[0]) * slider.value / slider.max);
      return sizes.find((size) => Math.abs(Math.log10(size / raw)) < 0.01) ?? raw;
    };
    const best = schemes.map((scheme) => scheme.best).filter((size) => size)[0] ?? sizes[0];
    slider.value = smooth
      ? Math.round((Math.log10(best) - span[0]) / (span[1] - span[0]) * slider.max)
      : Math.max(0, sizes.findIndex((size) => size >= best * (1 - 1e-9)));

    const stepOf = (scheme) => (each && scheme.best ? scheme.best : chosen());

    const strips = (card) => {
      const rows = schemes.filter((scheme) => shown.has(scheme));
      const svg = make("svg", { viewBox: `0 0 ${WIDE} ${rows.length * 76 + 30}` }, card);
      rows.forEach((scheme, row) => {
        const top = row * 76 + 6;
        make("text", { x: 0, y: top + 24, fill: "currentColor" }, svg, scheme.label.slice(0, 18));
        const [low, high, share] = scheme.windows ?? [[], [], []];
        const most = Math.max(...share, 1e-300), tall = 44 / Math.max(low.length, 1);
        low.forEach((from, n) => {
          const x = Math.max(across(from), LEFT), to = Math.min(across(high[n]), RIGHT);
          const opacity = 0.12 + 0.7 * share[n] / most;
          if (to > x) make("rect", { x, y: top + n * tall, width: to - x,
            height: Math.max(tall * 0.9, 0.6), fill: "currentColor", "fill-opacity": opacity }, svg);
        });
        scheme.sizes.forEach((size, n) => {
          const verdict = scheme.verdicts[n];
          const dot = make("text", { x: across(size), y: top + 62, "text-anchor": "middle",
            fill: ["diverged", "cycling"].includes(verdict) ? "var(--bad)" : "currentColor" }, svg,
          { levelled: "●", unsettled: "○", cycling: "◆", diverged: "✕" }[verdict] ?? "·");
          make("title", {}, dot, `step ${short(size)}: ${verdict}`);
        });
        if (scheme.threshold && scheme.threshold < 10 ** ends[1]) {
          const x = Math.max(across(scheme.threshold), LEFT);
          make("line", { x1: x, x2: x, y1: top, y2: top + 46, stroke: "currentColor",
            "stroke-dasharray": "2 3" }, svg);
        }
        const x = across(stepOf(scheme));
        make("line", { x1: x, x2: x, y1: top - 4, y2: top + 68, stroke: scheme.color,
          "stroke-width": 3, class: "chosen" }, svg);
      });
      for (let power = Math.ceil(ends[0]); power <= ends[1]; power += Math.ceil((ends[1] - ends[0]) / 8)) {
        make("text", { x: across(10 ** power), y: rows.length * 76 + 22, fill: "currentColor",
          "text-anchor": "middle" }, svg, power < -3 || power > 3 ? `1e${power}` : short(10 ** power));
      }
      make("text", { x: 0, y: rows.length * 76 + 22, fill: "currentColor" }, svg, "step size");
    };

    const curves = (card) => {
      const svg = make("svg", { viewBox: `0 0 ${WIDE} 300` }, card);
      const bottom = 262, top = 12;
      const down = (share) => bottom - (Math.log10(Math.min(Math.max(share, LOW), HIGH * 2)) + 6)
        / (Math.log10(HIGH) + 6) * (bottom - top);
      const along = (k) => LEFT + k / iterations * (RIGHT - LEFT - 90);
      [1, 0.01, 1e-4, LOW].forEach((share) => {
        make("line", { x1: LEFT, x2: RIGHT - 90, y1: down(share), y2: down(share),
          stroke: "var(--line)" }, svg);
        const words = share === LOW ? "under 0.0001%" : `${short(100 * share)}%`;
        make("text", { x: LEFT - 6, y: down(share) + 4, "text-anchor": "end", fill: "currentColor" },
          svg, words);
      });
      [0, 0.5, 1].forEach((part) => make("text", { x: along(part * iterations), y: bottom + 20,
        "text-anchor": "middle", fill: "currentColor" }, svg, String(Math.round(part * iterations))));
      make("text", { x: 0, y: bottom + 36, fill: "currentColor" }, svg, "excess left, by iteration");
      const used = [];
      schemes.filter((scheme) => shown.has(scheme)).forEach((scheme) => {
        const found = history(scheme, stepOf(scheme));
        if (!found) return;
        const points = [];
        for (const [n, cost] of found.costs.entries()) {
          const share = left(scheme, cost);
          if (share === null) break;
          points.push([along(scheme.at[n]), down(share)]);
          if (share > HIGH) break;
        }
        make("path", { d: `M${points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join("L")}`,
          fill: "none", stroke: scheme.color, "stroke-width": 2,
          "stroke-dasharray": found.recorded ? "none" : "6 3" }, svg);
        let y = points[points.length - 1][1];
        while (used.some((other) => Math.abs(other - y) < 14)) y += 14;
        used.push(y);
        const [x, low] = [points[points.length - 1][0] + 6, Math.min(y + 4, 296)];
        make("text", { x, y: low, fill: scheme.color }, svg, "■");
        make("text", { x: x + 12, y: low, fill: "currentColor" }, svg, scheme.label.slice(0, 12));
      });
    };

    // The path at a step size: as recorded, or as the closed form of least squares has it.
    const pathOf = (scheme, size) => {
      const { plane } = scheme, place = scheme.sizes.findIndex((known) => Math.abs(known / size - 1) < 1e-9);
      if (place >= 0) return plane.paths[place];
      if (!plane.swing) return [];
      return plane.at.flatMap((k) => [0, 1].map((axis) => plane.curvature.reduce(
        (sum, h, n) => sum + plane.swing[2 * n + axis] * (1 - size * h) ** k, plane.minimum[axis])));
    };

    const planes = (card) => {
      const rows = schemes.filter((scheme) => shown.has(scheme) && scheme.plane);
      const side = 200, gap = 40, deep = Math.ceil(rows.length / 3) * (side + 58);
      const svg = make("svg", { viewBox: `0 0 ${WIDE} ${deep}` }, card);
      rows.forEach((scheme, n) => {
        const x = (n % 3) * (side + gap), y = Math.floor(n / 3) * (side + 58) + 22;
        make("text", { x, y: y - 8, fill: "currentColor" }, svg, scheme.label.slice(0, 26));
        const box = make("svg", { x, y, width: side, height: side, viewBox: "0 0 1 1" }, svg);
        make("rect", { width: 1, height: 1, fill: "none", stroke: "var(--line)", "stroke-width": 0.01 }, box);
        const line = (flat, looks) => {
          const points = [];
          for (let at = 0; at + 1 < flat.length && flat[at] !== null && flat[at + 1] !== null; at += 2) {
            if (Math.abs(flat[at]) > 1e3 || Math.abs(flat[at + 1]) > 1e3) break;
            points.push([flat[at], 1 - flat[at + 1]]);
          }
          if (!points.length) return;
          const d = `M${points.map((point) => point.map((v) => v.toFixed(4)).join(",")).join("L")}`;
          make("path", { d, fill: "none", ...looks }, box);
        };
        scheme.plane.lines.forEach((flat) =>
          line(flat, { stroke: "currentColor", "stroke-opacity": 0.35, "stroke-width": 0.004 }));
        const flat = pathOf(scheme, stepOf(scheme));
        line(flat, { stroke: scheme.color, "stroke-width": 0.012, class: "walked" });
        const dot = (place, r, looks) => {
          if (place && place[0] !== null) make("circle", { cx: place[0], cy: 1 - place[1], r, ...looks }, box);
        };
        dot(flat.slice(0, 2), 0.018, { fill: scheme.color });
        dot(scheme.plane.minimum, 0.018, { fill: "none", stroke: "currentColor", "stroke-width": 0.008 });
        const [across, up] = scheme.plane.names;
        make("text", { x, y: y + side + 14, fill: "currentColor" }, svg, `across: ${across}`.slice(0, 34));
        make("text", { x, y: y + side + 28, fill: "currentColor" }, svg, `up: ${up}`.slice(0, 34));
      });
    };

    const said = () => {
      const parts = schemes.filter((scheme) => shown.has(scheme)).map((scheme) => {
        const found = history(scheme, stepOf(scheme));
        const at = each && scheme.best ? ` at ${short(scheme.best)}` : "";
        if (!found) return `${scheme.label}${at}: not run`;
        const share = left(scheme, found.costs[found.costs.length - 1]);
        const end = share === null || share > 1e6 ? "grows without bound"
          : share < LOW ? "under 0.0001% of the excess left" : `${short(100 * share)}% of the excess left`;
        return `${scheme.label}${at}: ${found.verdict}, ${end}`;
      });
      const head = each ? "Each at its best step" : `Step ${short(chosen())} for all`;
      return `${head}. ${parts.join("; ")}.`;
    };

    const draw = () => {
      section.querySelector("output").textContent = each ? "" : short(chosen());
      slider.setAttribute("aria-valuetext", short(chosen()));
      section.querySelector(".said").textContent = said();
      const boards = section.querySelectorAll(".board");
      boards.forEach((board) => board.replaceChildren());
      strips(boards[0]);
      curves(boards[1]);
      boards[2].hidden = !schemes.some((scheme) => shown.has(scheme) && scheme.plane);
      if (!boards[2].hidden) planes(boards[2]);
    };

    const boxes = section.querySelector(".schemes");
    schemes.forEach((scheme) => {
      const label = make("label", {}, boxes);
      const box = make("input", { type: "checkbox", checked: "" }, label);
      label.append(` ${scheme.label} `);
      box.addEventListener("change", () => {
        if (box.checked) shown.add(scheme); else shown.delete(scheme);
        draw();
      });
    });
    const modes = [...section.querySelectorAll("input[type=radio]")];
    modes.forEach((mode) => mode.addEventListener("change", () => {
      each = mode.value === "each";
      draw();
    }));
    slider.addEventListener("input", () => {
      each = false;
      modes.forEach((mode) => { mode.checked = mode.value === "one"; });
      draw();
    });
    section.hidden = false;
    draw();
  };

  document.querySelectorAll("script.explored").forEach((node) => {
    explore(node.previousElementSibling, JSON.parse(node.textContent));
  });
})();
