// Objects as YAML, line by line, each with who owns it. What is written here reads as the same object again.

const RESERVED = /^(true|false|yes|no|on|off|y|n|null|~|\.inf|\.nan|-|=|<<)$/i;
const PLAIN = /^[A-Za-z_/.]([\w\-./@ ]*[\w\-./@])?$/;

const key = (text) => (PLAIN.test(text) && !RESERVED.test(text) ? text : JSON.stringify(text));

function scalar(value) {
  if (typeof value !== "string") return [["n", JSON.stringify(value)]];
  if (PLAIN.test(value) && !RESERVED.test(value) && !/^\.\d/.test(value)) return [["s", value]];
  return [["s", JSON.stringify(value)]];
}

const isBlock = (text) => text.includes("\n") && /^[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd]*$/.test(text) && !/^\s/.test(text) && !/[ \t]\n/.test(text) && !text.startsWith("\n");
const isEmpty = (value) => Array.isArray(value) ? !value.length : !Object.keys(value).length;
const isTree = (value) => value !== null && typeof value === "object" && !isEmpty(value);

/** The parts of the managers' fields that belong to a member: `undefined` is nobody, `all` is the whole of it. */
const ALL = { all: true };
const isLeaf = (fields) => fields === ALL || !Object.keys(fields).some((name) => name !== ".");

function below(owners, names) {
  const found = [];
  for (const [manager, fields] of owners) {
    if (isLeaf(fields)) { if (fields === ALL || !("." in fields)) found.push([manager, ALL]); continue; }
    const name = names.find((n) => n in fields);
    if (name) found.push([manager, Object.keys(fields[name]).length ? fields[name] : ALL]);
  }
  return found;
}

function itemNames(item, index, owners) {
  const names = [`i:${index}`, `v:${JSON.stringify(item)}`];
  if (item && typeof item === "object") {
    for (const [, fields] of owners) {
      for (const name of Object.keys(fields)) {
        if (!name.startsWith("k:")) continue;
        try {
          if (Object.entries(JSON.parse(name.slice(2))).every(([k, v]) => item[k] === v)) names.push(name);
        } catch { /* not a key */ }
      }
    }
  }
  return names;
}

const own = (owners) => owners.filter(([, fields]) => fields === ALL || isLeaf(fields) || "." in fields).map(([manager]) => manager);

/** Lines of { indent, parts: [[class, text]…], owners: [manager index…] }. */
export function lines(object, managed = []) {
  const out = [];
  const owners = managed.map((entry, i) => [i, entry.fieldsV1 || {}]).filter(([, fields]) => Object.keys(fields).length);
  const put = (indent, parts, who) => out.push({ indent, parts, owners: own(who) });

  function value(indent, head, v, who) {
    if (isTree(v)) {
      put(indent, head, who);
      return Array.isArray(v) ? items(indent, v, who) : members(indent + 1, v, who);
    }
    const gap = head.length ? [["", " "]] : [];
    if (v !== null && typeof v === "object") return put(indent, [...head, ...gap, ["p", Array.isArray(v) ? "[]" : "{}"]], who);
    if (typeof v === "string" && isBlock(v)) {
      const body = v.endsWith("\n") ? v.slice(0, -1) : v;
      if (!body.endsWith("\n")) {
        put(indent, [...head, ...gap, ["p", v.endsWith("\n") ? "|" : "|-"]], who);
        for (const line of body.split("\n")) out.push({ indent: indent + 1, parts: [["s", line]], owners: own(who) });
        return;
      }
    }
    put(indent, [...head, ...gap, ...scalar(v)], who);
  }

  function members(indent, map, who) {
    for (const [name, v] of Object.entries(map)) value(indent, [["k", key(name)], ["p", ":"]], v, below(who, [`f:${name}`]));
  }

  function items(indent, list, who) {
    list.forEach((item, index) => {
      const mine = below(who, itemNames(item, index, who));
      const from = out.length;
      if (isTree(item)) (Array.isArray(item) ? items : members)(indent + 1, item, mine);
      else value(indent + 1, [], item, mine);
      // The dash stands where the item's first line begins.
      const first = out[from];
      first.parts = [["p", "- "], ...first.parts];
      first.indent = indent;
    });
  }

  if (isTree(object)) members(0, object, owners);
  return out;
}

export const textOf = (line) => "  ".repeat(line.indent) + line.parts.map(([, text]) => text).join("");
export const toYaml = (object) => lines(object).map(textOf).join("\n") + "\n";
