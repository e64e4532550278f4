// Two texts with their difference marked: what only the first has, and what only the second has.
import { h, long } from "./dom.js";

const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|./gsu) || [];

function marked(all, start, end, tag, spoken) {
  const middle = all.slice(start, all.length - end).join("");
  return [long(all.slice(0, start).join("")),
    middle && h(tag, {}, h("span", { class: "hidden" }, spoken), long(middle)),
    long(all.slice(all.length - end).join(""))];
}

const JUDGED = [["ins", "only expected: "], ["del", "only actual: "]];

/** Nodes for both texts, with the elements for what only one of them has: by default `ins` marks what is expected only, `del` what is there instead. */
export function diff(expected, actual, [one, other] = JUDGED) {
  if (expected.length + actual.length > 50000) return [long(expected), long(actual)];
  const [left, right] = [words(expected), words(actual)];
  let start = 0;
  while (start < left.length && left[start] === right[start]) start += 1;
  let end = 0;
  const most = Math.min(left.length, right.length) - start;
  while (end < most && left.at(-1 - end) === right.at(-1 - end)) end += 1;
  return [marked(left, start, end, ...one), marked(right, start, end, ...other)];
}
