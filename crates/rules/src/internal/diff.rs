//! A unified diff of two texts, by the algorithm of Python's difflib, which the reference uses: find the longest common
//! run of lines, then the same left and right of it. Lines that are frequent in a long text start no run.

use std::collections::HashMap;
use std::fmt::Write;

/// Lines shown before and after a change.
const CONTEXT: usize = 3;
/// From this number of lines on, frequent ones start no run.
const LONG: usize = 200;
/// How many pairs of lines are compared before the rest counts as changed. An object of the usual size needs some
/// thousands; without a limit a crafted one could keep a core busy for minutes.
const MAX_STEPS: usize = 200_000_000;

pub fn unified(old: &str, new: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
    let mut out = String::new();
    for group in groups(changes(&a, &b)) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let _ = writeln!(out, "@@ -{} +{} @@", range(first.a.0, last.a.1), range(first.b.0, last.b.1));
        for change in &group {
            let (removed, added) = match change.kind {
                LineKind::Equal => {
                    push_lines(&mut out, ' ', &a[change.a.0..change.a.1]);
                    continue;
                }
                LineKind::Changed => (&a[change.a.0..change.a.1], &b[change.b.0..change.b.1]),
            };
            push_lines(&mut out, '-', removed);
            push_lines(&mut out, '+', added);
        }
    }
    out
}

fn push_lines(out: &mut String, sign: char, lines: &[&str]) {
    for line in lines {
        out.push(sign);
        out.push_str(line);
        out.push('\n');
    }
}

fn range(from: usize, to: usize) -> String {
    match to - from {
        1 => format!("{}", from + 1),
        // An empty range is named by the line before it.
        0 => format!("{from},0"),
        length => format!("{},{length}", from + 1),
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum LineKind {
    Equal,
    Changed,
}

/// Lines from..to of both texts.
#[derive(Clone, Copy, Debug)]
struct Change {
    kind: LineKind,
    a: (usize, usize),
    b: (usize, usize),
}

#[derive(Clone, Copy)]
struct Run {
    a: usize,
    b: usize,
    size: usize,
}

/// The whole of both texts, equal and changed by turns.
fn changes(a: &[&str], b: &[&str]) -> Vec<Change> {
    let (mut i, mut j, mut all) = (0, 0, Vec::new());
    for run in Matcher::new(a, b).runs() {
        if i < run.a || j < run.b {
            all.push(Change { kind: LineKind::Changed, a: (i, run.a), b: (j, run.b) });
        }
        (i, j) = (run.a + run.size, run.b + run.size);
        if run.size > 0 {
            all.push(Change { kind: LineKind::Equal, a: (run.a, i), b: (run.b, j) });
        }
    }
    all
}

/// Changes with their context: those that are near each other together.
fn groups(mut changes: Vec<Change>) -> Vec<Vec<Change>> {
    let tail = |c: &Change| Change {
        a: (c.a.0.max(c.a.1.saturating_sub(CONTEXT)), c.a.1),
        b: (c.b.0.max(c.b.1.saturating_sub(CONTEXT)), c.b.1),
        ..*c
    };
    let head =
        |c: &Change| Change { a: (c.a.0, c.a.1.min(c.a.0 + CONTEXT)), b: (c.b.0, c.b.1.min(c.b.0 + CONTEXT)), ..*c };
    if let Some(first) = changes.first_mut().filter(|c| c.kind == LineKind::Equal) {
        *first = tail(first);
    }
    if let Some(last) = changes.last_mut().filter(|c| c.kind == LineKind::Equal) {
        *last = head(last);
    }
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for change in &changes {
        let is_gap = change.kind == LineKind::Equal && change.a.1 - change.a.0 > 2 * CONTEXT;
        if is_gap {
            group.push(head(change));
            groups.push(std::mem::take(&mut group));
        }
        group.push(if is_gap { tail(change) } else { *change });
    }
    groups.push(group);
    groups.retain(|group| group.iter().any(|c| c.kind == LineKind::Changed));
    groups
}

struct Matcher<'a> {
    a: &'a [&'a str],
    b: &'a [&'a str],
    /// For each line of `a`, where it is in `b`; none for a frequent one.
    places: Vec<&'a [usize]>,
    steps: usize,
    /// The length of the run that ends at each line of `b` (shifted by one), for the line of `a` at hand and the one
    /// before.
    lengths: [Vec<usize>; 2],
}

impl<'a> Matcher<'a> {
    fn new(a: &'a [&'a str], b: &'a [&'a str]) -> Matcher<'a> {
        Matcher { a, b, places: Vec::new(), steps: 0, lengths: [vec![0; b.len() + 1], vec![0; b.len() + 1]] }
    }

    /// Common runs in the order of the lines; the last one is empty and stands at the end.
    fn runs(self) -> Vec<Run> {
        let mut index: HashMap<&str, Vec<usize>> = HashMap::new();
        for (j, line) in self.b.iter().enumerate() {
            index.entry(line).or_default().push(j);
        }
        if self.b.len() >= LONG {
            let frequent = self.b.len() / 100 + 1;
            index.retain(|_, places| places.len() <= frequent);
        }
        let places = self.a.iter().map(|line| index.get(line).map_or(&[][..], Vec::as_slice)).collect();
        Matcher { places, ..self }.find_all()
    }

    fn find_all(mut self) -> Vec<Run> {
        let whole = ((0, self.a.len()), (0, self.b.len()));
        let (mut waiting, mut found) = (vec![whole], Vec::new());
        while let Some((a, b)) = waiting.pop() {
            let run = self.longest(a, b);
            if run.size == 0 {
                continue;
            }
            found.push(run);
            if a.0 < run.a && b.0 < run.b {
                waiting.push(((a.0, run.a), (b.0, run.b)));
            }
            let (i, j) = (run.a + run.size, run.b + run.size);
            if i < a.1 && j < b.1 {
                waiting.push(((i, a.1), (j, b.1)));
            }
        }
        found.sort_by_key(|run| run.a);
        let mut runs: Vec<Run> = Vec::with_capacity(found.len() + 1);
        for run in found {
            match runs.last_mut() {
                Some(last) if last.a + last.size == run.a && last.b + last.size == run.b => last.size += run.size,
                _ => runs.push(run),
            }
        }
        runs.push(Run { a: self.a.len(), b: self.b.len(), size: 0 });
        runs
    }

    /// The longest common run; of equally long ones the first in `a`, then in `b`.
    fn longest(&mut self, a: (usize, usize), b: (usize, usize)) -> Run {
        let mut best = Run { a: a.0, b: b.0, size: 0 };
        let (mut touched, mut touched_before): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for i in a.0..a.1 {
            if self.steps > MAX_STEPS {
                break;
            }
            let [before, now] = &mut self.lengths;
            for &j in self.places[i].iter().skip_while(|j| **j < b.0).take_while(|j| **j < b.1) {
                let length = before[j] + 1;
                now[j + 1] = length;
                touched.push(j + 1);
                if length > best.size {
                    best = Run { a: i + 1 - length, b: j + 1 - length, size: length };
                }
            }
            self.steps += self.places[i].len() + 1;
            touched_before.drain(..).for_each(|j| before[j] = 0);
            std::mem::swap(&mut touched, &mut touched_before);
            self.lengths.swap(0, 1);
        }
        touched_before.drain(..).for_each(|j| self.lengths[0][j] = 0);
        // Frequent lines at both ends belong to it, too.
        while best.a > a.0 && best.b > b.0 && self.a[best.a - 1] == self.b[best.b - 1] {
            best = Run { a: best.a - 1, b: best.b - 1, size: best.size + 1 };
        }
        while best.a + best.size < a.1
            && best.b + best.size < b.1
            && self.a[best.a + best.size] == self.b[best.b + best.size]
        {
            best.size += 1;
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks() {
        let numbers = |range: std::ops::Range<u32>| range.map(|n| n.to_string()).collect::<Vec<_>>();
        let text = |lines: &[String]| lines.join("\n");
        let old = numbers(0..30);
        let mut changed = old.clone();
        changed[2] = "two".into();
        changed[20] = "twenty".into();
        changed.insert(21, "more".into());
        let cases: [(&[String], &[String], &str); 5] = [
            (&old, &old, ""),
            (&old[..1], &changed[2..3], "@@ -1 +1 @@\n-0\n+two\n"),
            (
                &old,
                &changed,
                "@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -18,7 +18,8 @@\n 17\n 18\n 19\n-20\n+twenty\n+more\n 21\n 22\n 23\n",
            ),
            (&old[..3], &old[..2], "@@ -1,3 +1,2 @@\n 0\n 1\n-2\n"),
            (&old[..2], &old[..3], "@@ -1,2 +1,3 @@\n 0\n 1\n+2\n"),
        ];
        for (old, new, expected) in cases {
            assert_eq!(unified(&text(old), &text(new)), expected);
        }
    }

    #[test]
    fn frequent_lines_of_long_texts_start_no_run() {
        // As Python's difflib answers: the braces are common to texts of fewer than 200 lines, and not to longer ones.
        let filler = |n: usize, mark: &str| (0..n).map(|i| format!("{mark}{i}\n}}")).collect::<Vec<_>>().join("\n");
        let short = unified(&filler(50, "a"), &filler(50, "b"));
        assert!(short.contains("\n }\n"));
        let long = unified(&filler(150, "a"), &filler(150, "b"));
        assert!(!long.contains("\n }\n"));
    }
}
