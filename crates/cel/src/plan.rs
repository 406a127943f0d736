//! From a checked expression to a program.

use crate::ast::{Checked, Comprehension, Expr, ExprId, Literal, Reference};
use crate::cost::Cost;
use crate::declared::Object;
use crate::env::Env;
use crate::eval::check_key;
use crate::libraries::{self, Run, arithmetic::Arith};
use crate::program::*;
use crate::types::Type;
use crate::value::{Key, Val, double_to_int, double_to_uint};
use kubelith_meta::{Head, Str};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

type Planned = Result<u32, String>;

pub fn plan(env: &Env, checked: &Checked) -> Result<Program, String> {
    let variables = env.variables().iter().map(|v| v.name.as_str().into()).collect();
    let program = Program { nodes: Vec::new(), root: 0, locals: 0, inits: Vec::new(), depth: 0, variables };
    let known = vec![None; checked.ast.len()];
    let mut planner = Planner { env, checked, program, scopes: Vec::new(), known, depth: 0, used: HashSet::new() };
    planner.program.root = planner.node(checked.ast.root())?;
    planner.program.locals = planner.program.inits.len() as u32;
    Ok(planner.program)
}

struct Planner<'p> {
    env: &'p Env,
    checked: &'p Checked,
    program: Program,
    /// The variables of comprehensions, innermost last.
    scopes: Vec<(Str, u32)>,
    /// What nodes became: some are used twice.
    known: Vec<Option<u32>>,
    depth: u32,
    /// The local slots that were asked for.
    used: HashSet<u32>,
}

/// Functions whose calls with a constant are evaluated when they are planned.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

impl Planner<'_> {
    fn add(&mut self, node: Node) -> u32 {
        self.program.nodes.push(node);
        (self.program.nodes.len() - 1) as u32
    }

    fn node(&mut self, id: ExprId) -> Planned {
        if let Some(known) = self.known[id.0 as usize] {
            return Ok(known);
        }
        self.depth += 1;
        self.program.depth = self.program.depth.max(self.depth);
        let node = self.expr(id);
        self.depth -= 1;
        let node = node?;
        self.known[id.0 as usize] = Some(node);
        Ok(node)
    }

    fn constant(&mut self, val: Val<'static>) -> Planned {
        Ok(self.add(Node::Const(val)))
    }

    fn expr(&mut self, id: ExprId) -> Planned {
        let checked = self.checked;
        match checked.reference(id) {
            Reference::Constant(literal) => return self.constant(literal_val(literal)),
            Reference::Type if !matches!(checked.ast.expr(id), Expr::Struct { .. }) => {
                let name = match checked.type_of(id) {
                    Type::Type(Some(of)) => of.runtime_name(),
                    _ => "type",
                };
                return self.constant(Val::Type(name.into()));
            }
            _ => {}
        }
        match checked.ast.expr(id) {
            Expr::Literal(literal) => self.constant(literal_val(literal)),
            Expr::Ident(_) => {
                let base = self.base(id)?;
                Ok(self.add(Node::Attr(Attr { base, path: Vec::new() })))
            }
            Expr::Select { test_only, .. } => {
                let attr = self.path(id)?;
                Ok(self.add(if *test_only { Node::Has(attr) } else { Node::Attr(attr) }))
            }
            Expr::Call { .. } => self.call(id),
            Expr::List { elements, optional } => {
                let ids = checked.ast.list(*elements).to_vec();
                let nodes = ids.into_iter().map(|id| self.node(id)).collect::<Result<Vec<_>, _>>()?;
                let indices = checked.ast.optional(*optional);
                let optional = (!indices.is_empty())
                    .then(|| (0..nodes.len()).map(|i| indices.contains(&(i as u32))).collect::<Box<[bool]>>());
                let all_constant = nodes.iter().all(|n| self.is_constant(*n));
                let node = self.add(Node::List { elements: nodes.into(), optional });
                self.folded(node, all_constant)
            }
            Expr::Map(entries) => {
                let mut nodes = Vec::new();
                for entry in checked.ast.entries(*entries) {
                    nodes.push((self.node(entry.key)?, self.node(entry.value)?, entry.optional));
                }
                let all_constant = nodes.iter().all(|(k, v, _)| self.is_constant(*k) && self.is_constant(*v));
                let node = self.add(Node::Map { entries: nodes.into() });
                self.folded(node, all_constant)
            }
            Expr::Struct { name, fields } => {
                let mut nodes = Vec::new();
                for field in checked.ast.fields(*fields) {
                    nodes.push((Arc::from(field.name.as_str()), self.node(field.value)?, field.optional));
                }
                let name = match checked.type_of(id) {
                    Type::Object(object) => object.name.as_str().into(),
                    _ => name.trim_start_matches('.').into(),
                };
                Ok(self.add(Node::Struct { name, fields: nodes.into() }))
            }
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
        }
    }

    fn is_constant(&self, node: u32) -> bool {
        matches!(self.program.nodes[node as usize], Node::Const(_))
    }

    /// A node of constants becomes one.
    fn folded(&mut self, node: u32, all_constant: bool) -> Planned {
        if !all_constant {
            return Ok(node);
        }
        let val = self.program.fold(node).map_err(|e| e.to_string())?;
        let val = own(val);
        self.program.nodes[node as usize] = Node::Const(val);
        Ok(node)
    }

    /// Where a path begins.
    fn base(&mut self, id: ExprId) -> Result<Base, String> {
        if let (Expr::Ident(name), Reference::Variable | Reference::None) =
            (self.checked.ast.expr(id), self.checked.reference(id))
        {
            let name = name.strip_prefix('.').unwrap_or(name);
            if let Some((_, slot)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
                self.used.insert(*slot);
                return Ok(Base::Local(*slot));
            }
            let slot = self.env.variables().iter().position(|v| v.name == name);
            let slot = match slot {
                Some(slot) => slot,
                None => {
                    self.program.variables.push(name.into());
                    self.program.variables.len() - 1
                }
            };
            return Ok(Base::Variable(slot as u32));
        }
        let node = self.node(id)?;
        match &self.program.nodes[node as usize] {
            Node::Attr(_) => Err("a path inside of a path".into()),
            _ => Ok(Base::Node(node)),
        }
    }

    /// The steps of `a.b[c].d`, from the last to the first, are put behind one base.
    fn path(&mut self, id: ExprId) -> Result<Attr, String> {
        let checked = self.checked;
        let mut links = Vec::new();
        let mut at = id;
        loop {
            if !matches!(checked.reference(at), Reference::None | Reference::Function { .. }) {
                break;
            }
            match checked.ast.expr(at) {
                Expr::Select { operand, .. } => {
                    links.push(at);
                    at = *operand;
                }
                Expr::Call { function, args, .. } if is_index(function) => {
                    links.push(at);
                    at = checked.ast.list(*args)[0];
                }
                _ => break,
            }
            // has(a.b) ends a path: what follows applies to a bool.
            if matches!(checked.ast.expr(at), Expr::Select { test_only: true, .. }) {
                break;
            }
        }
        let mut attr = match checked.ast.expr(at) {
            Expr::Ident(_) if matches!(checked.reference(at), Reference::Variable | Reference::None) => {
                Attr { base: self.base(at)?, path: Vec::new() }
            }
            _ => {
                let node = self.node(at)?;
                match &self.program.nodes[node as usize] {
                    Node::Attr(attr) => attr.clone(),
                    _ => Attr { base: Base::Node(node), path: Vec::new() },
                }
            }
        };
        for link in links.into_iter().rev() {
            let step = self.step(link)?;
            push(&mut attr, step);
        }
        Ok(attr)
    }

    fn step(&mut self, id: ExprId) -> Result<Step, String> {
        let checked = self.checked;
        match checked.ast.expr(id) {
            Expr::Select { operand, field, test_only } => {
                Ok(Step { key: self.field(field, checked.type_of(*operand)), optional: false, test: *test_only })
            }
            Expr::Call { function, args, .. } => {
                let optional = function.as_str() != "_[_]";
                let list = checked.ast.list(*args);
                let (of, index) = (list[0], list[1]);
                let node = self.node(index)?;
                let key = match &self.program.nodes[node as usize] {
                    Node::Const(val) => {
                        check_key(val).map_err(|e| e.to_string())?;
                        match val.clone() {
                            Val::Text(name) => {
                                let known = self.known_field(&name, checked.type_of(of));
                                StepKey::Field(Field { head: Head::of(&name), known, name })
                            }
                            val => StepKey::Const(val),
                        }
                    }
                    Node::Attr(attr) => StepKey::Path(Box::new(attr.clone())),
                    Node::Has(_) => StepKey::Node(node),
                    _ => StepKey::Node(node),
                };
                Ok(Step { key, optional, test: false })
            }
            _ => Err("no step of a path".into()),
        }
    }

    fn field(&self, name: &str, of: &Type) -> StepKey {
        if let Type::Object(object) = of
            && object.open
            && &*object.name != "JSONPatch"
        {
            return StepKey::Made(name.into());
        }
        StepKey::Field(Field { name: name.into(), head: Head::of(name), known: self.known_field(name, of) })
    }

    fn known_field(&self, name: &str, of: &Type) -> Option<(Arc<Object>, usize, Head)> {
        let Type::Object(object) = of else { return None };
        let field = object.field_named(name)?;
        let at = object.fields.iter().position(|f| std::ptr::eq(f, field))?;
        Some((object.clone(), at, Head::of(&field.property)))
    }

    fn comprehension(&mut self, fold: &Comprehension) -> Planned {
        let init = self.node(fold.accu_init)?;
        let range = self.node(fold.range)?;
        let slot = |planner: &mut Self, init| {
            planner.program.inits.push(init);
            (planner.program.inits.len() - 1) as u32
        };
        let accu = slot(self, Some(init));
        let iter = slot(self, None);
        let iter2 = fold.iter_var2.as_ref().map(|_| slot(self, None));
        let scope = self.scopes.len();
        // The accumulator hides variables of the same name.
        if let (Some(name), Some(slot)) = (&fold.iter_var2, iter2) {
            self.scopes.push((name.clone(), slot));
        }
        self.scopes.push((fold.iter_var.clone(), iter));
        self.scopes.push((fold.accu_var.clone(), accu));
        let condition = self.node(fold.condition)?;
        let step = self.step_of(fold.step, &fold.accu_var, accu)?;
        self.scopes.truncate(scope);
        self.scopes.push((fold.accu_var.clone(), accu));
        let result = self.node(fold.result);
        self.scopes.truncate(scope);
        let fold = Fold { range, accu, iter, iter2, condition, step, result: result? };
        let node = match self.quantifier(&fold, init) {
            Some(quantifier) => Node::Quantifier(Box::new(quantifier)),
            None => Node::Fold(Box::new(fold)),
        };
        Ok(self.add(node))
    }

    /// `all` and `exists`. What a macro makes is all that can name its accumulator, so the predicate does not.
    fn quantifier(&self, fold: &Fold, init: u32) -> Option<Quantifier> {
        let node = |at: u32| &self.program.nodes[at as usize];
        let is_accu = |at: u32| match node(at) {
            Node::Attr(Attr { base: Base::Local(slot), path }) => *slot == fold.accu && path.is_empty(),
            _ => false,
        };
        let (wins, predicate) = match (node(init), node(fold.condition), node(fold.step)) {
            (Node::Const(Val::Bool(true)), Node::NotStrictlyFalse(going), Node::And(so_far, predicate))
                if is_accu(*going) && is_accu(*so_far) =>
            {
                (false, *predicate)
            }
            (Node::Const(Val::Bool(false)), Node::NotStrictlyFalse(going), Node::Or(so_far, predicate))
                if matches!(node(*going), Node::Not(found) if is_accu(*found)) && is_accu(*so_far) =>
            {
                (true, *predicate)
            }
            _ => return None,
        };
        let Fold { range, iter, iter2, .. } = *fold;
        is_accu(fold.result).then_some(Quantifier { range, iter, iter2, predicate, wins })
    }

    /// The step of a comprehension; lists and maps grow where they are.
    fn step_of(&mut self, id: ExprId, accu_var: &str, accu: u32) -> Planned {
        let checked = self.checked;
        let Expr::Call { function, args, .. } = checked.ast.expr(id) else { return self.node(id) };
        let args = checked.ast.list(*args).to_vec();
        let is_accu = |id: ExprId| matches!(checked.ast.expr(id), Expr::Ident(name) if name == accu_var);
        match (function.as_str(), &args[..]) {
            ("_?_:_", [condition, then, or_else]) if is_accu(*or_else) => {
                let condition = self.node(*condition)?;
                let then = self.step_of(*then, accu_var, accu)?;
                let or_else = self.node(*or_else)?;
                let branch = |planner: &Self, node: u32| match &planner.program.nodes[node as usize] {
                    Node::Attr(attr) => attr.clone(),
                    _ => Attr { base: Base::Node(node), path: Vec::new() },
                };
                let (then, or_else) = (Box::new(branch(self, then)), Box::new(branch(self, or_else)));
                let base = Base::Either { condition, then, or_else };
                Ok(self.add(Node::Attr(Attr { base, path: Vec::new() })))
            }
            ("_+_", [list, item]) if is_accu(*list) && matches!(checked.type_of(id), Type::List(_)) => {
                let before = self.used.remove(&accu);
                let item = self.node(*item)?;
                if self.used.contains(&accu) {
                    return self.node(id);
                }
                if before {
                    self.used.insert(accu);
                }
                Ok(self.add(Node::Append { accu, item }))
            }
            ("cel.@mapInsert", [map, key, value]) if is_accu(*map) => {
                let (key, value) = (self.node(*key)?, self.node(*value)?);
                Ok(self.add(Node::Insert { accu, key, value }))
            }
            ("cel.@mapInsert", [map, more]) if is_accu(*map) => {
                let map = self.node(*more)?;
                Ok(self.add(Node::InsertAll { accu, map }))
            }
            _ => self.node(id),
        }
    }

    fn call(&mut self, id: ExprId) -> Planned {
        let checked = self.checked;
        let Expr::Call { function, target, args } = checked.ast.expr(id) else { return Err("no call".into()) };
        if is_index(function) {
            let attr = self.path(id)?;
            return Ok(self.add(Node::Attr(attr)));
        }
        let overloads: Vec<_> = checked.overloads(id).collect();
        let name = checked.function(id).map_or(function.as_str(), |f| f.name);
        let is_member = overloads.first().is_none_or(|o| o.receiver);
        let mut nodes = Vec::new();
        if let Some(target) = target.filter(|_| is_member) {
            nodes.push(self.node(target)?);
        }
        for arg in checked.ast.list(*args).to_vec() {
            nodes.push(self.node(arg)?);
        }
        let overload = if let [one] = overloads[..] { one.id } else { "" };
        let node = match self.operator(name, overload, &nodes) {
            Some(node) => node,
            None => self.function(id, name, overload, &nodes)?,
        };
        let all_constant = nodes.len() == 1 && self.is_constant(nodes[0]) && CONVERSIONS.contains(&name);
        if let ("@in", "in_list", [item, list]) = (name, overload, &nodes[..])
            && let Some(node) = self.set(*item, *list)
        {
            return Ok(self.add(node));
        }
        let node = self.add(node);
        self.folded(node, all_constant)
    }

    fn operator(&mut self, name: &str, overload: &str, args: &[u32]) -> Option<Node> {
        let cost = Cost::of(name, overload);
        Some(match (name, args) {
            ("_&&_", [first, rest @ ..]) => self.chain(*first, rest, Node::And),
            ("_||_", [first, rest @ ..]) => self.chain(*first, rest, Node::Or),
            ("_?_:_", [condition, then, or_else]) => {
                let branch = |node: u32| match &self.program.nodes[node as usize] {
                    Node::Attr(attr) | Node::Has(attr) => Box::new(attr.clone()),
                    _ => Box::new(Attr { base: Base::Node(node), path: Vec::new() }),
                };
                let base = Base::Either { condition: *condition, then: branch(*then), or_else: branch(*or_else) };
                Node::Attr(Attr { base, path: Vec::new() })
            }
            ("!_", [x]) => Node::Not(*x),
            ("-_", [x]) => Node::Negate(*x),
            ("@not_strictly_false", [x]) => Node::NotStrictlyFalse(*x),
            ("_==_", [a, b]) => Node::Equal(*a, *b),
            ("_!=_", [a, b]) => Node::NotEqual(*a, *b),
            ("_+_", [a, b]) => Node::Arith(Arith::Add, cost, *a, *b),
            ("_-_", [a, b]) => Node::Arith(Arith::Subtract, cost, *a, *b),
            ("_*_", [a, b]) => Node::Arith(Arith::Multiply, cost, *a, *b),
            ("_/_", [a, b]) => Node::Arith(Arith::Divide, cost, *a, *b),
            ("_%_", [a, b]) => Node::Arith(Arith::Modulo, cost, *a, *b),
            ("_<_", [a, b]) => Node::Compare(Comparison::Less, cost, *a, *b),
            ("_<=_", [a, b]) => Node::Compare(Comparison::LessEqual, cost, *a, *b),
            ("_>_", [a, b]) => Node::Compare(Comparison::Greater, cost, *a, *b),
            ("_>=_", [a, b]) => Node::Compare(Comparison::GreaterEqual, cost, *a, *b),
            ("@in", [a, b]) => Node::In(cost, *a, *b),
            ("size", [x]) => Node::Size(*x),
            ("type", [x]) => Node::TypeOf(*x),
            ("dyn", [x]) => Node::Same(*x),
            ("sort", [x]) => Node::Sort(cost, *x),
            ("@sortByAssociatedKeys", [a, b]) => Node::SortBy(cost, *a, *b),
            ("or", [a, b]) => Node::OrOptional(*a, *b),
            ("orValue", [a, b]) => Node::OrValue(*a, *b),
            ("matches", [a, b]) if !self.is_constant(*b) => Node::Matches(cost, *a, *b),
            _ => return None,
        })
    }

    /// `a && b && c`.
    fn chain(&mut self, first: u32, rest: &[u32], link: fn(u32, u32) -> Node) -> Node {
        let Some((last, middle)) = rest.split_last() else { return Node::Same(first) };
        let left = middle.iter().fold(first, |left, right| self.add(link(left, *right)));
        link(left, *last)
    }

    fn function(&mut self, id: ExprId, name: &str, overload: &str, args: &[u32]) -> Result<Node, String> {
        let cost = Cost::of(name, overload);
        let pattern = match name {
            "matches" => Some(PatternKind::Matches),
            "find" => Some(PatternKind::Find),
            "findAll" => Some(PatternKind::FindAll),
            _ => None,
        };
        if let (Some(kind), Some(Node::Const(Val::Text(text)))) =
            (pattern, args.get(1).map(|node| &self.program.nodes[*node as usize]))
        {
            kubelith_schema::go_regexp::check(text)?;
            let (text, compiled) = (text.clone(), OnceLock::new());
            return Ok(Node::Pattern(Box::new(Pattern { kind, text, compiled, cost, args: args.into() })));
        }
        if let ("matches", [a, b]) = (name, args) {
            return Ok(Node::Matches(cost, *a, *b));
        }
        // Functions that look at their arguments themselves.
        let unguarded = matches!(name, "contains" | "startsWith" | "endsWith" | "flatten");
        let bind = |o: &crate::decl::Overload| {
            libraries::run(o.id).map(|run| Overload { run, args: (!unguarded).then(|| o.args.clone().into()) })
        };
        let checked = self.checked;
        let overloads: Vec<Overload> = match overload {
            "" => {
                let all = checked.function(id).map_or(&[][..], |f| &f.overloads[..]);
                all.iter().filter(|o| o.args.len() == args.len()).filter_map(bind).collect()
            }
            _ => checked.overloads(id).filter_map(bind).collect(),
        };
        let single = overload.is_empty() && checked.function(id).is_some_and(|f| f.overloads.len() == 1);
        let many = match &overloads[..] {
            [one] if !overload.is_empty() || single => matches!(one.run, Run::Many(_)),
            [] => return Err(format!("no such overload: {name}(...)")),
            _ => true,
        };
        Ok(Node::Call(Box::new(Call {
            function: name.into(),
            args: args.into(),
            overloads: overloads.into(),
            cost,
            many,
        })))
    }

    /// `x in [1, 2]` with constants that can be looked up.
    fn set(&mut self, item: u32, list: u32) -> Option<Node> {
        let Node::Const(val) = &self.program.nodes[list as usize] else { return None };
        let list = val.as_list()?;
        if list.is_empty() {
            return Some(Node::Const(Val::Bool(false)));
        }
        let mut members = Members::default();
        let set = &mut members.others;
        for element in list.iter() {
            let element = element.ok()?;
            match &element {
                Val::Bool(_) => {}
                Val::Str(text) => {
                    members.texts.insert((*text).into());
                    continue;
                }
                Val::Text(text) => {
                    members.texts.insert(text.clone());
                    continue;
                }
                Val::Double(d) => {
                    set.extend(double_to_int(*d).filter(|i| *i as f64 == *d).map(Key::Int));
                    set.extend(double_to_uint(*d).filter(|u| *u as f64 == *d).map(Key::Uint));
                }
                Val::Int(i) => {
                    set.extend(Key::of(&Val::Double(*i as f64)).ok().flatten());
                    set.extend(u64::try_from(*i).ok().map(Key::Uint));
                }
                Val::Uint(u) => {
                    set.extend(Key::of(&Val::Double(*u as f64)).ok().flatten());
                    set.extend(i64::try_from(*u).ok().map(Key::Int));
                }
                _ => return None,
            }
            set.extend(Key::of(&element).ok().flatten());
        }
        Some(Node::InSet(item, Box::new(members)))
    }
}

fn is_index(function: &str) -> bool {
    matches!(function, "_[_]" | "_[?_]" | "_?._")
}

/// What follows a conditional applies to both of its branches.
fn push(attr: &mut Attr, step: Step) {
    match &mut attr.base {
        Base::Either { then, or_else, .. } => {
            push(then, step.clone());
            push(or_else, step);
        }
        _ => attr.path.push(step),
    }
}

fn literal_val(literal: &Literal) -> Val<'static> {
    match literal {
        Literal::Null => Val::Null,
        Literal::Bool(b) => Val::Bool(*b),
        Literal::Int(i) => Val::Int(*i),
        Literal::Uint(u) => Val::Uint(*u),
        Literal::Double(d) => Val::Double(*d),
        Literal::String(s) => Val::text(s.as_str()),
        Literal::Bytes(b) => Val::Blob(b.clone()),
    }
}

/// A value that stands for itself: constants do not borrow.
fn own(val: Val<'_>) -> Val<'static> {
    use crate::value::{List, Map};
    match val {
        Val::Null => Val::Null,
        Val::Bool(b) => Val::Bool(b),
        Val::Int(i) => Val::Int(i),
        Val::Uint(u) => Val::Uint(u),
        Val::Double(d) => Val::Double(d),
        Val::Str(s) => Val::text(s),
        Val::Text(s) => Val::Text(s),
        Val::Bytes(b) => Val::Blob(b.into()),
        Val::Blob(b) => Val::Blob(b),
        Val::Duration(d) => Val::Duration(d),
        Val::Timestamp(t) => Val::Timestamp(t),
        Val::Type(name) => Val::Type(name),
        Val::Opaque(opaque) => Val::Opaque(opaque),
        Val::Optional(of) => Val::Optional(of.map(|of| Arc::new(own((*of).clone())))),
        other => {
            if let Some(list) = other.as_list() {
                let items = list.iter().filter_map(Result::ok).map(own).collect();
                return Val::List(Arc::new(List::new(items).unwrap_or_else(|_| List::flat(Vec::new()))));
            }
            let mut map = Map::with_capacity(0);
            for (key, value) in other.as_map().map(|m| m.entries()).unwrap_or_default() {
                if let Ok(value) = value {
                    // What was in a map can be put into one.
                    let _ = map.insert(own(key), own(value));
                }
            }
            Val::Map(Arc::new(map))
        }
    }
}
