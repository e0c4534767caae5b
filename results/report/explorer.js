"use strict";
(() => {
  const PALE = [228, 223, 213], GROWS = [226, 96, 79], UNKNOWN = [140, 140, 140], INK = "#000", COLUMNS = 240, GROWN = 1 + 1e-4;
  const RAMP = [[0, 8, 81, 156], [0.1, 33, 113, 181], [0.5, 133, 187, 224], [0.9, 207, 223, 233],
    [1, ...PALE]];

  const make = (name, attributes = {}, parent = null, text = "") => {
    const svg = ["svg", "line", "rect", "path", "text", "circle", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  };
  const short = (value, digits = 2) => {
    const number = Number(value.toPrecision(digits));
    return Math.abs(number) < 1e-3 && number ? number.toExponential() : number.toString();
  };
  // A share of the start's excess as a person reads it.
  const percent = (share) => {
    if (share === null || !isFinite(share)) return "gone off";
    if (share <= 0) return "0\u00a0%";
    if (share < 1e-6) return "<0.0001\u00a0%";
    if (share > 100) return `${Number(share.toPrecision(2)).toLocaleString("en")} times`;
    return `${share < 0.1 ? Number((100 * share).toPrecision(2)) : Math.round(100 * share)}\u00a0%`;
  };
  const color = (ratio) => {
    if (ratio === null) return UNKNOWN;
    if (ratio > GROWN) return GROWS;
    const above = Math.max(1, RAMP.findIndex((stop) => stop[0] >= Math.min(ratio, 1)));
    const [low, high] = [RAMP[above - 1], RAMP[above]];
    const part = Math.min(1, Math.max(0, (ratio - low[0]) / (high[0] - low[0])));
    return [1, 2, 3].map((n) => Math.round(low[n] + part * (high[n] - low[n])));
  };
  const css = ([red, green, blue]) => `rgb(${red},${green},${blue})`;
  const thickness = (scheme) => scheme.thickness ?? [1];
  // What is left at the end, of the excess of zero weights; lines are of that of the start.
  const lastOf = (scheme, { left }) => left.at(-1) === null ? null : left.at(-1) * (scheme.ratio ?? 1);
  const tried = (scheme, size) =>
    scheme.sizes.findIndex((known) => Math.abs(known / size - 1) < 1e-5);

  // A redraw asks several times for the same: the last answer for each scheme is kept.
  const remembered = (compute) => {
    const answers = new Map();
    return (scheme, size, iterations) => {
      if (answers.get(scheme)?.size !== size) {
        answers.set(scheme, { size, answer: compute(scheme, size, iterations) });
      }
      return answers.get(scheme).answer;
    };
  };
  // What k iterations leave of each layer that is drawn; null where it is not known.
  const closed = (scheme, size, k) => {
    const sums = scheme.first.map(() => 0);
    let group = -1;
    scheme.curvature.forEach((h, n) => {
      if (n === scheme.first[group + 1]) group += 1;
      sums[group] += scheme.share[n] ? scheme.share[n] * Math.abs(1 - size * h) ** (2 * k) : 0;
    });
    return sums;
  };
  const ratios = (scheme, size, iterations) => {
    if (scheme.curvature) {
      return closed(scheme, size, iterations).map((left, n) => left / (thickness(scheme)[n] || 1));
    }
    const place = tried(scheme, size);
    if (place < 0) return null;
    if (scheme.verdicts[place] === "decided by rounding") return thickness(scheme).map(() => null);
    if (scheme.ends) return scheme.ends[place];
    const end = scheme.left[place][scheme.left[place].length - 1];
    return [end === null ? 2 : end];
  };
  const history = remembered((scheme, size, iterations) => {
    const place = tried(scheme, size);
    if (place >= 0) {
      return { at: scheme.at, left: scheme.left[place], verdict: scheme.verdicts[place] };
    }
    if (!scheme.curvature) return null;
    const at = [...new Set(Array.from({ length: 201 }, (_, n) => Math.round(n / 200 * iterations)))];
    const left = at.map((k) => closed(scheme, size, k).reduce((sum, one) => sum + one, 0));
    return { at, left, verdict: "predicted" };
  });
  const layersOf = (scheme, size, iterations) => {
    if (scheme.curvature) {
      const { at } = history(scheme, size, iterations);
      const every = Math.ceil(at.length / 101);
      const kept = at.filter((_, n) => n % every === 0 || n === at.length - 1);
      return { at: kept, rows: kept.map((k) => closed(scheme, size, k)) };
    }
    if (!scheme.path || Math.abs(scheme.path_step / size - 1) > 1e-5) return null;
    return { at: scheme.path_at, rows: scheme.path };
  };

  const explore = (section, data) => {
    const { schemes, iterations } = data;
    const sizes = [...new Set(schemes.flatMap((scheme) => scheme.sizes))].sort((a, b) => a - b);
    if (sizes.length < 2) return;
    const smooth = schemes.every((scheme) => scheme.curvature);
    const heavy = schemes.flatMap((scheme) => (scheme.curvature ?? [])
      .filter((_, n) => scheme.share[n] > 0.03).flatMap((h) => [0.1 / (iterations * h), 2.5 / h]));
    const half = smooth ? 0.1 : (Math.log10(sizes[sizes.length - 1] / sizes[0]) / (sizes.length - 1)) / 2;
    const ends = [Math.min(sizes[0] / 10 ** half, ...heavy),
      Math.max(sizes[sizes.length - 1] * 10 ** half, ...heavy)].map(Math.log10);
    const share = (size) => (Math.log10(size) - ends[0]) / (ends[1] - ends[0]);
    const snap = (raw) => (smooth ? raw : sizes.reduce((one, other) =>
      (Math.abs(Math.log(other / raw)) < Math.abs(Math.log(one / raw)) ? other : one)));
    const shown = new Set(schemes), own = new Map();
    let each = true, common = schemes.map((scheme) => scheme.best).find((size) => size) ?? sizes[0];
    const timed = schemes.every((scheme) => scheme.step > 0), clock = section.querySelector(".timed");
    const bySeconds = () => clock.firstChild.checked;
    const placed = (scheme, k) => (bySeconds() ? scheme.fit + k * scheme.step : k);
    const last = () => Math.max(0, ...[...shown].map((scheme) => placed(scheme, iterations)));
    const stepOf = (scheme) => (each ? own.get(scheme) ?? scheme.best ?? common : common);

    const slider = section.querySelector("input[type=range]");
    slider.max = smooth ? 400 : sizes.length - 1;
    const span = smooth ? ends : [Math.log10(sizes[0]), Math.log10(sizes[sizes.length - 1])];
    const ofSlider = () => (smooth
      ? 10 ** (span[0] + (span[1] - span[0]) * slider.value / slider.max) : sizes[Number(slider.value)]);
    const toSlider = () => {
      slider.value = smooth ? Math.round((Math.log10(common) - span[0]) / (span[1] - span[0]) * slider.max)
        : Math.max(0, sizes.indexOf(snap(common)));
    };

    const board = section.querySelector(".melt");
    const rows = schemes.map((scheme) => {
      const box = make("div", { class: "row" }, board);
      make("strong", {}, box, scheme.label);
      const pair = make("div", { class: "pair" }, box);
      const why = make("div", { class: "why" }, pair), what = make("div", { class: "what" }, pair);
      const left = make("canvas", { width: COLUMNS, height: 120 }, why);
      const line = make("div", { class: "chosen" }, why);
      const right = make("canvas", { width: 360, height: 240 }, what);
      const end = make("div", { class: "end" }, pair);
      const draw = left.getContext("2d");
      for (let column = 0; column < COLUMNS; column += 1) {
        let raw = 10 ** (ends[0] + (ends[1] - ends[0]) * (column + 0.5) / COLUMNS);
        if (!scheme.curvature) {
          raw = scheme.sizes.reduce((one, other) =>
            (Math.abs(Math.log(other / raw)) < Math.abs(Math.log(one / raw)) ? other : one));
        }
        let top = 0;
        ratios(scheme, raw, iterations).forEach((ratio, n) => {
          draw.fillStyle = css(color(ratio));
          const deep = thickness(scheme)[n] * left.height;
          draw.fillRect(column, top, 1, deep + 0.5);
          if (ratio > GROWN && column % 6 === 0) {  // seen without red, too
            draw.fillStyle = "rgba(120,20,10,.5)";
            draw.fillRect(column, top, 1, deep + 0.5);
          }
          top += deep;
        });
      }
      const move = (event) => {
        if (event.type === "pointermove" && !event.buttons) return;
        const { left: from, width } = why.getBoundingClientRect();
        const part = Math.min(1, Math.max(0, (event.clientX - from) / width));
        const size = snap(10 ** (ends[0] + part * (ends[1] - ends[0])));
        if (each) own.set(scheme, size); else common = size;
        event.preventDefault();
        refresh();
      };
      why.addEventListener("pointerdown", (event) => { why.setPointerCapture(event.pointerId); move(event); });
      why.addEventListener("pointermove", move);
      return { scheme, box, line, right, end };
    });
    const axis = make("div", { class: "axis" }, board);
    const marks = make("div", { class: "why" }, axis);
    const every = Math.ceil((ends[1] - ends[0]) / 5);
    for (let power = Math.ceil(ends[0]); power <= ends[1]; power += 1) {
      if (power % every === 0) {
        const label = power < -3 || power > 3 ? `1e${power}` : short(10 ** power);
        make("span", { style: `left:${100 * share(10 ** power)}%` }, marks, label);
      }
    }
    const counts = make("div", { class: "what" }, axis);
    const ticks = [0, 0.5, 1].map((part) => [part, make("span", { style: `left:${100 * part}%` }, counts)]);

    const curve = ({ scheme, right, end }, most) => {
      const size = stepOf(scheme), draw = right.getContext("2d");
      const { width, height } = right, across = (k) => placed(scheme, k) / most * width;
      const down = (left) => height * (1 - Math.min(Math.max(left, 0), 1.2));
      draw.clearRect(0, 0, width, height);
      const found = history(scheme, size, iterations), layers = layersOf(scheme, size, iterations);
      const look = ratios(scheme, size, iterations);
      if (!found) { end.textContent = "not run"; return; }
      if (layers) {
        let below = layers.at.map(() => 0);
        for (let n = thickness(scheme).length - 1; n >= 0; n -= 1) {
          const above = layers.rows.map((row, k) => below[k] + row[n]);
          draw.beginPath();
          layers.at.forEach((k, place) => draw.lineTo(across(k), down(above[place])));
          for (let place = layers.at.length - 1; place >= 0; place -= 1) {
            draw.lineTo(across(layers.at[place]), down(below[place]));
          }
          draw.fillStyle = css(color(look[n]));
          draw.fill();
          below = above;
        }
      } else {
        draw.beginPath();
        draw.moveTo(across(0), height);
        found.left.forEach((left, n) => { if (left !== null) draw.lineTo(across(found.at[n]), down(left)); });
        draw.lineTo(across(iterations), height);
        draw.fillStyle = "rgba(128,128,128,.25)";
        draw.fill();
      }
      draw.beginPath();
      for (const [n, left] of found.left.entries()) {
        if (left === null) break;
        draw.lineTo(across(found.at[n]), down(left));
      }
      [draw.lineWidth, draw.strokeStyle] = [2.5, INK];
      draw.stroke();
      end.textContent = percent(lastOf(scheme, found));
    };

    // The path at a step size: as recorded, or as the closed form of least squares has it.
    const pathOf = (scheme, size) => {
      const { plane } = scheme, place = tried(scheme, size);
      if (place >= 0) return plane.paths[place];
      if (!plane.swing) return [];
      return plane.at.flatMap((k) => [0, 1].map((axis) => plane.curvature.reduce(
        (sum, h, n) => sum + plane.swing[2 * n + axis] * (1 - size * h) ** k, plane.minimum[axis])));
    };

    const planes = (card) => {
      card.replaceChildren();
      schemes.filter((scheme) => shown.has(scheme) && scheme.plane).forEach((scheme) => {
        const tile = make("figure", { class: "plane" }, card);
        make("strong", {}, tile, scheme.label);
        const box = make("svg", { viewBox: "0 0 1 1" }, tile);
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
        make("figcaption", {}, tile, `across: ${scheme.plane.names[0]}; up: ${scheme.plane.names[1]}`);
      });
    };

    const said = () => {
      const parts = schemes.filter((scheme) => shown.has(scheme)).map((scheme) => {
        const size = stepOf(scheme), found = history(scheme, size, iterations);
        const at = each ? ` at ${short(size)}` : "";
        if (!found) return `${scheme.label}${at}: not run`;
        const end = lastOf(scheme, found);
        return end === null || !isFinite(end) ? `${scheme.label}${at}: grows without bound`
          : `${scheme.label}${at}: ${found.verdict}, ${percent(end)}${end > 100 ? "" : " of"} the excess cost left`;
      });
      const head = own.size ? "Each at a step of its own" : `Each at its ${data.which_step} step`;
      return `${each ? head : `Step ${short(common)} for all`}: ${parts.join("; ")}.`;
    };

    const modes = [...section.querySelectorAll("input[type=radio]")];
    const refresh = () => {
      const most = last();
      toSlider();
      ticks.forEach(([part, tick]) => {
        tick.textContent = bySeconds() ? `${short(part * most)} s` : String(Number((part * iterations).toFixed(2)));
      });
      modes.forEach((mode) => { mode.checked = (mode.value === "each") === each; });
      section.querySelector("output").textContent = each ? "" : short(common);
      slider.setAttribute("aria-valuetext", short(common));
      section.querySelector(".said").textContent = said();
      let moved = false;  // what stands as it is drawn is not drawn again
      rows.forEach((row) => {
        const state = shown.has(row.scheme) ? `${stepOf(row.scheme)} ${most}` : "";
        if (state === row.state) return;
        [row.state, row.box.hidden, moved] = [state, !state, true];
        row.line.style.left = `${100 * share(stepOf(row.scheme))}%`;
        if (state) curve(row, most);
      });
      const card = section.querySelector(".planes");
      card.hidden = !schemes.some((scheme) => shown.has(scheme) && scheme.plane);
      if (moved && !card.hidden) planes(card);
      const state = new URLSearchParams(each ? {} : { step: short(common, 6) });
      if (bySeconds()) state.set("by", "seconds");
      if (shown.size < schemes.length) state.set("schemes", [...shown].map((one) => one.label).join(","));
      // The address, which may be sent; a frame has none of its own.
      if (touched && window === window.top) window.history.replaceState(null, "", `#${state}`);
    };
    let touched = false;
    const change = (act) => (event) => { touched = true; act(event); refresh(); };

    const boxes = section.querySelector(".schemes");
    const wanted = new URLSearchParams(window.location.hash.slice(1));
    if (Number(wanted.get("step")) > 0) { each = false; common = snap(Number(wanted.get("step"))); }
    [clock.hidden, clock.firstChild.checked] = [!timed, timed && wanted.get("by") === "seconds"];
    const kept = wanted.get("schemes")?.split(",");
    schemes.forEach((scheme) => {
      const label = make("label", {}, boxes), box = make("input", { type: "checkbox" }, label);
      box.checked = !kept || kept.includes(scheme.label);
      if (!box.checked) shown.delete(scheme);
      label.append(` ${scheme.label} `);
      box.addEventListener("change", change(() => {
        if (box.checked) shown.add(scheme); else shown.delete(scheme);
      }));
    });
    modes.forEach((mode) => mode.addEventListener("change", change(() => {
      each = mode.value === "each";
      own.clear();
    })));
    clock.addEventListener("change", change(() => {}));
    slider.addEventListener("input", change(() => { each = false; common = ofSlider(); }));
    board.addEventListener("pointerdown", () => { touched = true; }, true);
    section.hidden = false;
    refresh();
  };

  document.querySelectorAll("script.explored").forEach((node) => {
    explore(node.previousElementSibling, JSON.parse(node.textContent));
  });
})();
