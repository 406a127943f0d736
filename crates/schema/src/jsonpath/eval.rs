//! Following paths through values.

use super::{End, JsonPathError, MissingKeys, Node};
use kubelith_meta::Value;
use kubelith_meta::text::go_type;
use std::cmp::Ordering;

/// Wildcards and recursion multiply: a short path over a deep object can lead to more places than memory holds.
const MAX_RESULTS: usize = 100_000;
/// Ranges within ranges; each takes a frame of the stack.
const MAX_RANGES: usize = 100;

type Values<'a> = Vec<&'a Value>;

/// A step that failed, and the values that it had: a filter that asks for existence takes them for a yes.
struct Failure<'a> {
    error: JsonPathError,
    values: Values<'a>,
}

fn fail<'a, T>(values: Values<'a>, message: impl Into<String>) -> Result<T, Failure<'a>> {
    Err(Failure { error: JsonPathError(message.into()), values })
}

pub(super) fn results<'a>(
    nodes: &'a [Node],
    object: &'a Value,
    missing: MissingKeys,
) -> Result<Vec<Values<'a>>, JsonPathError> {
    let mut out = Vec::new();
    let mut eval = Eval { nodes, missing, open: 0, ended: 0, size: 0 };
    eval.block(0, object, &mut out)?;
    Ok(out)
}

struct Eval<'a> {
    nodes: &'a [Node],
    missing: MissingKeys,
    /// How many ranges are open.
    open: usize,
    /// The `end` that was met last.
    ended: usize,
    /// What all results together count.
    size: usize,
}

/// What an action did besides yielding values.
enum Flow {
    On,
    Range,
    End,
}

impl<'a> Eval<'a> {
    /// Evaluates the template from node `from` on, up to the `end` of the range it is in.
    fn block(&mut self, from: usize, object: &'a Value, out: &mut Vec<Values<'a>>) -> Result<(), JsonPathError> {
        let mut i = from;
        while let Some(node) = self.nodes.get(i) {
            let flow = self.flow(node)?;
            let values = self.walk(vec![object], node).map_err(|f| f.error)?;
            self.count(values.len() + 1).map_err(|f| f.error)?;
            match flow {
                Flow::End => {
                    self.ended = i;
                    return Ok(());
                }
                Flow::Range => {
                    self.open += 1;
                    if self.open > MAX_RANGES {
                        return Err(JsonPathError("ranges are nested too deeply".into()));
                    }
                    for value in &values {
                        self.block(i + 1, value, out)?;
                    }
                    if values.is_empty() {
                        // Walk through it all the same, to learn where it ends.
                        self.block(i + 1, &Value::Null, &mut Vec::new())?;
                    }
                    self.open -= 1;
                    i = self.ended.max(i);
                }
                Flow::On => out.push(values),
            }
            i += 1;
        }
        // A range that nothing ends reaches to the end of the template.
        self.ended = self.nodes.len();
        Ok(())
    }

    /// Whether an action opens or ends a range.
    fn flow(&self, node: &Node) -> Result<Flow, JsonPathError> {
        let Node::List(nodes) = node else {
            return Ok(Flow::On);
        };
        let mut flow = Flow::On;
        for node in nodes {
            match node {
                Node::Identifier(name) if name == "range" => flow = Flow::Range,
                Node::Identifier(name) if name == "end" && self.open > 0 => return Ok(Flow::End),
                Node::Identifier(name) if name == "end" => {
                    return Err(JsonPathError("not in range, nothing to end".into()));
                }
                _ => {}
            }
        }
        Ok(flow)
    }

    fn count(&mut self, more: usize) -> Result<(), Failure<'a>> {
        self.size += more;
        if self.size > MAX_RESULTS { fail(Vec::new(), "path has too many results") } else { Ok(()) }
    }

    fn list(&mut self, input: Values<'a>, nodes: &'a [Node]) -> Result<Values<'a>, Failure<'a>> {
        nodes.iter().try_fold(input, |values, node| self.walk(values, node))
    }

    fn walk(&mut self, input: Values<'a>, node: &'a Node) -> Result<Values<'a>, Failure<'a>> {
        if input.len() > MAX_RESULTS {
            return fail(Vec::new(), "path has too many results");
        }
        match node {
            Node::List(nodes) => self.list(input, nodes),
            // A text stands for itself, a number or boolean for each value.
            Node::Constant(text @ Value::String(_)) => Ok(vec![text]),
            Node::Constant(value) => Ok(vec![value; input.len()]),
            Node::Field(name) => self.field(&input, name),
            Node::Wildcard => Ok(input.iter().flat_map(|v| children(v)).take(MAX_RESULTS + 1).collect()),
            Node::Recursive => {
                let mut out = Vec::new();
                input.iter().try_for_each(|v| descend(v, &mut out))?;
                Ok(out)
            }
            Node::Slice { start, end, step } => slice(input, *start, *end, *step),
            Node::Union(parts) => {
                let mut out = Vec::new();
                for part in parts {
                    match self.list(input.clone(), part) {
                        Ok(values) => out.extend(values),
                        Err(failure) => return Err(Failure { values: input, ..failure }),
                    }
                }
                Ok(out)
            }
            Node::Filter { left, comparison } => {
                let comparison = comparison.as_ref().map(|(operator, right)| (operator.as_str(), right.as_slice()));
                self.filter(input, left, comparison)
            }
            Node::Identifier(name) => match name.as_str() {
                "range" => Ok(input),
                "end" => Ok(Vec::new()),
                other => fail(input, format!("unrecognized identifier {other}")),
            },
        }
    }

    fn field(&self, input: &[&'a Value], name: &str) -> Result<Values<'a>, Failure<'a>> {
        let values: Values<'a> = input.iter().filter_map(|v| v.get(name)).collect();
        if values.is_empty() && !input.is_empty() && self.missing == MissingKeys::Error {
            return fail(values, format!("{name} is not found"));
        }
        Ok(values)
    }

    fn filter(
        &mut self,
        input: Values<'a>,
        left: &'a [Node],
        comparison: Option<(&str, &'a [Node])>,
    ) -> Result<Values<'a>, Failure<'a>> {
        let mut out = Vec::new();
        for value in &input {
            let Value::Array(elements) = value else {
                let message = format!("{} is not array or slice and cannot be filtered", go_text(value));
                return fail(input, message);
            };
            for element in elements {
                let lefts = self.list(vec![element], left);
                let Some((operator, right)) = comparison else {
                    if !lefts.unwrap_or_else(|failure| failure.values).is_empty() {
                        out.push(element);
                    }
                    continue;
                };
                let one = |values: Result<Values<'a>, Failure<'a>>| match values {
                    Err(failure) => Err(failure.error),
                    Ok(values) if values.len() > 1 => {
                        Err(JsonPathError("can only compare one element at a time".into()))
                    }
                    Ok(values) => Ok(values.first().copied()),
                };
                let failed = |error| Failure { error, values: input.clone() };
                let Some(left) = one(lefts).map_err(failed)? else { continue };
                let Some(right) = one(self.list(vec![element], right)).map_err(failed)? else { continue };
                match compare(operator, left, right) {
                    Ok(true) => out.push(element),
                    Ok(false) => {}
                    Err(message) => return fail(out, message),
                }
            }
        }
        Ok(out)
    }
}

/// Members of an object in the order of their keys, elements of a list. (The reference also takes strings apart
/// into bytes, which leads nowhere.)
fn children(value: &Value) -> Values<'_> {
    match value {
        Value::Object(m) => m.values().collect(),
        Value::Array(a) => a.iter().collect(),
        _ => Vec::new(),
    }
}

/// The value and all that is in it, except empty and simple things. Strings count: they are lists of bytes to
/// the reference.
fn descend<'a>(value: &'a Value, out: &mut Values<'a>) -> Result<(), Failure<'a>> {
    if out.len() > MAX_RESULTS {
        return fail(Vec::new(), "path has too many results");
    }
    match value {
        Value::String(s) if !s.is_empty() => out.push(value),
        Value::Object(m) if !m.is_empty() => {
            out.push(value);
            m.values().try_for_each(|v| descend(v, out))?;
        }
        Value::Array(a) if !a.is_empty() => {
            out.push(value);
            a.iter().try_for_each(|v| descend(v, out))?;
        }
        _ => {}
    }
    Ok(())
}

fn slice(input: Values<'_>, start: Option<i64>, end: End, step: Option<i64>) -> Result<Values<'_>, Failure<'_>> {
    let mut out = Vec::new();
    for value in &input {
        let elements = match value {
            Value::Null => continue,
            Value::Array(elements) => elements,
            other => {
                let message = format!("{} is not array or slice", go_type(other));
                return fail(input, message);
            }
        };
        let length = elements.len() as i64;
        let from_back = |i: i64| if i < 0 { i.saturating_add(length) } else { i };
        let start = from_back(start.unwrap_or(0));
        let end = match end {
            End::Open => length,
            End::AfterStart(0) => length,
            End::AfterStart(end) | End::Before(end) => from_back(end),
        };
        if start == end {
            return Ok(out);
        }
        let out_of_bounds = |i: i64| format!("array index out of bounds: index {i}, length {length}");
        if start >= length || start < 0 {
            return fail(input, out_of_bounds(start));
        }
        if end > length || end < 0 {
            return fail(input, out_of_bounds(end.saturating_sub(1)));
        }
        if start > end {
            return fail(input, format!("starting index {start} is greater than ending index {end}"));
        }
        let step = match step {
            None => 1,
            Some(step) if step > 0 => usize::try_from(step).unwrap_or(usize::MAX),
            Some(_) => return fail(input, "step must be > 0"),
        };
        out.extend(elements[start as usize..end as usize].iter().step_by(step));
    }
    Ok(out)
}

fn compare(operator: &str, left: &Value, right: &Value) -> Result<bool, String> {
    const UNORDERED: &str = "invalid type for comparison";
    if !matches!(operator, "<" | ">" | "==" | "!=" | "<=" | ">=") {
        return Err(format!("unrecognized filter operator {operator}"));
    }
    let ordering = match (left, right) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => {
            return match operator {
                "==" => Ok(a == b),
                "!=" => Ok(a != b),
                _ => Err(UNORDERED.into()),
            };
        }
        (Value::Null | Value::Array(_) | Value::Object(_), _)
        | (_, Value::Null | Value::Array(_) | Value::Object(_)) => {
            return Err(UNORDERED.into());
        }
        _ => return Err("incompatible types for comparison".into()),
    };
    Ok(match operator {
        "==" => ordering == Some(Ordering::Equal),
        "!=" => ordering != Some(Ordering::Equal),
        "<" => ordering == Some(Ordering::Less),
        "<=" => matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        ">" => !matches!(ordering, Some(Ordering::Less | Ordering::Equal)),
        _ => ordering != Some(Ordering::Less),
    })
}

/// Go's `%v`.
fn go_text(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::Array(a) => format!("[{}]", a.iter().map(go_text).collect::<Vec<_>>().join(" ")),
        Value::Object(m) => {
            let entries: Vec<String> = m.iter().map(|(k, v)| format!("{k}:{}", go_text(v))).collect();
            format!("map[{}]", entries.join(" "))
        }
        other => super::printed(other, ""),
    }
}
