// The part of numpy that rule.js needs: arrays of any shape with broadcasting. A number is an array without a shape.
"use strict";
const arrays = (() => {
  const isArray = (value) => value !== null && typeof value === "object" && "data" in value;
  const shapeOf = (value) => (isArray(value) ? value.shape : []);
  const size = (shape) => shape.reduce((product, n) => product * n, 1);
  const make = (shape, data) => (shape.length ? { shape, data } : data[0]);
  function flat(list) { return Array.isArray(list) ? list.flatMap(flat) : [list]; }
  function array(list) {
    const shape = [];
    for (let inner = list; Array.isArray(inner); inner = inner[0]) { shape.push(inner.length); }
    return make(shape, flat(list));
  }
  function common(...shapes) {
    const length = Math.max(...shapes.map((shape) => shape.length));
    return Array.from({ length }, (_, i) => shapes.reduce((found, shape) => {
      const n = shape[i - length + shape.length] ?? 1;
      if (n !== 1 && found !== 1 && n !== found) { throw new Error("shapes do not fit: " + shapes.join(" and ")); }
      return n === 1 ? found : n;
    }, 1));
  }
  // For every place of ``shape`` the place in ``value`` that is broadcast there.
  function spread(value, shape) {
    if (!isArray(value)) { return Array(size(shape)).fill(value); }
    const skip = shape.length - value.shape.length;
    return Array.from({ length: size(shape) }, (_, at) => {
      let from = 0, stride = 1;
      for (let axis = shape.length - 1, rest = at; axis >= 0; axis -= 1) {
        const own = axis >= skip ? value.shape[axis - skip] : 1;
        if (own !== 1) { from += (rest % shape[axis]) * stride; }
        stride *= own;
        rest = Math.floor(rest / shape[axis]);
      }
      return value.data[from];
    });
  }
  function each(combine, ...values) {
    const shape = common(...values.map(shapeOf)), lists = values.map((value) => spread(value, shape));
    return make(shape, Array.from({ length: size(shape) }, (_, i) => combine(...lists.map((list) => list[i]))));
  }
  const operators = {
    "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b, "**": (a, b) => a ** b,
    "==": (a, b) => a === b, "!=": (a, b) => a !== b, "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b,
  };
  const op = (sign, a, b) => each(operators[sign], a, b);

  // Which places of an array an index means, and the shape of what is there. Known: ..., None, whole numbers, slices, masks.
  function places(shape, index) {
    const used = index.filter((part) => part !== null && part !== "...").length;
    const parts = index.flatMap((part) => (part === "..." ? Array(shape.length - used).fill({ slice: [null, null] }) : [part]));
    while (parts.filter((part) => part !== null).length < shape.length) { parts.push({ slice: [null, null] }); }
    let axis = 0, found = [0], result = [];
    parts.forEach((part) => {
      if (part === null) { result.push(1); return; }
      const n = shape[axis], from = (k, other) => (k === null ? other : k < 0 ? k + n : Math.min(k, n));
      let chosen;
      if (typeof part === "number") { chosen = [part < 0 ? part + n : part]; }
      else if (isArray(part)) { chosen = [...part.data.keys()].filter((k) => part.data[k]); }
      else { const [start, stop] = part.slice; chosen = [...Array(n).keys()].slice(from(start, 0), from(stop, n)); }
      if (typeof part !== "number") { result.push(chosen.length); }
      found = found.flatMap((base) => chosen.map((k) => base * n + k));
      axis += 1;
    });
    return [result, found];
  }
  function get(value, index) {
    const own = Array.isArray(value) ? { shape: [value.length], data: value } : value; // a shape is a plain list
    const [shape, found] = places(own.shape, index), data = found.map((at) => own.data[at]);
    return Array.isArray(value) ? (shape.length ? data : data[0]) : make(shape, data);
  }
  function set(value, index, items) {
    const [shape, found] = places(value.shape, index), list = spread(items, shape);
    found.forEach((at, i) => { value.data[at] = list[i]; });
  }
  // Rows along an axis, each made into one number or into a row as long.
  function along(value, axis, keep, reduce) {
    if (axis === undefined || axis === null) { return reduce([...value.data]); }
    const at = axis < 0 ? axis + value.shape.length : axis, n = value.shape[at];
    const inner = size(value.shape.slice(at + 1)), outer = size(value.shape.slice(0, at)), data = [];
    for (let o = 0; o < outer; o += 1) {
      for (let i = 0; i < inner; i += 1) { data.push(reduce(Array.from({ length: n }, (_, k) => value.data[(o * n + k) * inner + i]))); }
    }
    return make(value.shape.flatMap((m, i) => (i === at ? (keep ? [1] : []) : [m])), data);
  }
  function rows(value, change) {
    const n = value.shape.at(-1), data = [];
    for (let start = 0; start < value.data.length; start += n) { data.push(...change(value.data.slice(start, start + n), start)); }
    return make(value.shape, data);
  }
  const total = (list) => list.reduce((sum, value) => sum + value, 0);
  const deviation = (list) => { const mean = total(list) / list.length; return Math.sqrt(total(list.map((v) => (v - mean) ** 2)) / list.length); };
  // Half goes to the even neighbour, as in numpy.
  const even = (value) => { const near = Math.round(value); return Math.abs(value % 1) === 0.5 && near % 2 ? near - 1 : near; };
  function share(list, q) {
    const sorted = [...list].sort((a, b) => a - b), at = q * (sorted.length - 1), low = Math.floor(at);
    return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
  }
  const filled = (n) => (shape) => { const list = [].concat(shape); return make(list, Array(size(list)).fill(n)); };
  return {
    array, op, get, set, each,
    neg: (value) => each((v) => -v, value),
    not: (value) => each((v) => !v, value),
    asarray: (value) => value,
    zeros: filled(0), ones: filled(1), empty: filled(0),
    arange: (n) => make([n], [...Array(n).keys()]),
    broadcast_to: (value, shape) => make(shape, spread(value, shape)),
    where: (test, a, b) => each((t, x, y) => (t ? x : y), test, a, b),
    round: (value, digits) => each((v) => even(v * 10 ** digits) / 10 ** digits, value),
    sum: (value, { axis, keepdims }) => along(value, axis, keepdims, total),
    std: (value, { axis, keepdims }) => along(value, axis, keepdims, deviation),
    quantile: (value, shares, { axis }) => shares.map((q) => along(value, axis, false, (list) => share(list, q))),
    argsort: (value) => rows(value, (list) => [...list.keys()].sort((a, b) => list[a] - list[b])),
    take_along_axis: (value, index) => rows(index, (list, start) => list.map((k) => value.data[start + k])),
    put_along_axis: (value, index, items) => { rows(index, (list, start) => list.map((k, i) => { value.data[start + k] = items.data[start + i]; })); },
    maximum_accumulate: (value) => rows(value, (list) => { let most = -Infinity; return list.map((v) => (most = Math.max(most, v))); }),
  };
})();
