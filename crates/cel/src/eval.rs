//! Running programs.

mod operations;

pub(crate) use operations::check_key;
use operations::*;

use crate::cost::{self, Cost};
use crate::libraries::arithmetic::{negate, no_operator};
use crate::libraries::{Run, lists, regex as patterns, two_variables};
use crate::program::{
    Attr, Base, Call, Comparison, Compiled, Fold, Members, Node, Overload, Pattern, PatternKind, Program, Quantifier,
    Step, StepKey,
};
use crate::types::Type;
use crate::value::{EvalError, List, Map, ObjectVal, PatchVal, Res, Val};
use kubelith_meta::Value;
use std::cmp::Ordering;
use std::sync::Arc;

/// The variables of an evaluation.
pub trait Activation<'a>: Sync {
    /// The variable of a slot, which is its place among those of the environment; `None` if it has no value.
    fn variable(&self, slot: usize) -> Option<Res<'a>>;
}

/// No variables at all.
#[derive(Debug)]
pub struct NoVariables;

impl<'a> Activation<'a> for NoVariables {
    fn variable(&self, _: usize) -> Option<Res<'a>> {
        None
    }
}

/// Variables in the order of the environment.
impl<'a> Activation<'a> for Vec<Option<Val<'a>>> {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        self.get(slot)?.clone().map(Ok)
    }
}

/// As above; a variable that could not be read says why when it is used.
impl<'a> Activation<'a> for Vec<Option<Res<'a>>> {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        self.get(slot)?.clone()
    }
}

impl<'a, const N: usize> Activation<'a> for [Val<'a>; N] {
    fn variable(&self, slot: usize) -> Option<Res<'a>> {
        self.get(slot).cloned().map(Ok)
    }
}

pub(crate) struct Machine<'a> {
    program: &'a Program,
    activation: &'a dyn Activation<'a>,
    locals: Vec<Option<Res<'a>>>,
    pub cost: u64,
    limit: u64,
}

/// What following a path came to.
enum Found<'a> {
    Value(Val<'a>),
    /// An optional step on the way found nothing.
    Absent,
}

impl<'a> Machine<'a> {
    pub fn new(program: &'a Program, activation: &'a dyn Activation<'a>, limit: u64) -> Machine<'a> {
        let locals = vec![None; program.locals as usize];
        Machine { program, activation, locals, cost: 0, limit }
    }

    #[inline]
    fn pay(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::cost()) } else { Ok(()) }
    }

    /// What is over the limit ends there, as if each was paid for itself.
    #[inline]
    fn pay_one_by_one(&mut self, times: u64) -> Result<(), EvalError> {
        if self.cost.saturating_add(times) <= self.limit {
            self.cost += times;
            return Ok(());
        }
        (0..times).try_for_each(|_| self.pay(1))
    }

    pub fn eval(&mut self, node: u32) -> Res<'a> {
        let program = self.program;
        match &program.nodes[node as usize] {
            Node::Const(val) => Ok(borrow(val)),
            Node::Attr(attr) => self.attr(attr),
            Node::Has(attr) => self.has(attr),
            Node::And(a, b) => self.logic(*a, *b, false),
            Node::Or(a, b) => self.logic(*a, *b, true),
            Node::Compare(op, cost, a, b) => self.binary(*cost, *a, *b, |a, b| compare(*op, a, b)),
            Node::Equal(a, b) => self.binary(Cost::Equals, *a, *b, |a, b| a.equals(b).map(Val::Bool)),
            Node::NotEqual(a, b) => {
                self.binary(Cost::Smaller, *a, *b, |a, b| Ok(Val::Bool(!matches!(a.equals(b), Ok(true)))))
            }
            Node::Arith(op, cost, a, b) => self.binary(*cost, *a, *b, |a, b| op.apply(a, b)),
            Node::In(cost, a, b) => self.binary(*cost, *a, *b, is_in),
            Node::InSet(a, set) => self.in_set(*a, set),
            Node::Not(x) => self.unary(Cost::Fixed(1), *x, |x| match x {
                Val::Bool(b) => Ok(Val::Bool(!b)),
                _ => Err(EvalError::no_overload()),
            }),
            Node::Negate(x) => self.unary(Cost::Fixed(1), *x, negate),
            Node::NotStrictlyFalse(x) => {
                let result = match self.eval(*x) {
                    Ok(Val::Bool(b)) => b,
                    Err(e) if e.is_end() => return Err(e),
                    _ => true,
                };
                self.pay(1)?;
                Ok(Val::Bool(result))
            }
            Node::Size(x) => self.unary(Cost::Fixed(1), *x, |x| match x.size() {
                Some(size) => Ok(Val::Int(size as i64)),
                None => Err(no_operator(x, "size")),
            }),
            Node::TypeOf(x) => self.unary(Cost::Fixed(1), *x, |x| x.type_value()),
            Node::Same(x) => self.unary(Cost::Fixed(1), *x, |x| Ok(x.clone())),
            Node::Matches(cost, a, b) => self.binary(*cost, *a, *b, matches),
            Node::Pattern(pattern) => self.pattern(pattern),
            Node::Sort(cost, x) => self.unary(*cost, *x, |x| match x.as_list() {
                Some(_) => lists::sort_by(x, x),
                None => Err(no_operator(x, "sort")),
            }),
            Node::SortBy(cost, a, b) => self.binary(*cost, *a, *b, lists::sort_by),
            Node::Call(call) => self.call(call),
            Node::OrOptional(a, b) => match self.eval(*a)? {
                Val::Optional(None) => self.eval(*b),
                other => Ok(other),
            },
            Node::OrValue(a, b) => match self.eval(*a)? {
                Val::Optional(None) => self.eval(*b),
                Val::Optional(Some(of)) => Ok((*of).clone()),
                other => Ok(other),
            },
            Node::List { elements, optional } => self.list(elements, optional.as_deref()),
            Node::Map { entries } => self.map(entries),
            Node::Struct { name, fields } => self.structure(name, fields),
            Node::Fold(fold) => self.fold(fold),
            Node::Quantifier(quantifier) => self.quantifier(quantifier),
            Node::Append { accu, item } => self.append(*accu, *item),
            Node::Insert { accu, key, value } => self.insert(*accu, *key, *value),
            Node::InsertAll { accu, map } => self.insert_all(*accu, *map),
        }
    }

    #[inline]
    fn unary(&mut self, cost: Cost, x: u32, run: impl FnOnce(&Val<'a>) -> Res<'a>) -> Res<'a> {
        let arg = self.eval(x);
        let result = match &arg {
            Ok(val) => run(val),
            Err(e) if e.is_end() => return arg,
            Err(e) => Err(e.clone()),
        };
        self.pay_call(cost, &[arg.as_ref().ok()], &result)?;
        result
    }

    /// Both sides are evaluated, whatever the first comes to.
    #[inline]
    fn binary(&mut self, cost: Cost, a: u32, b: u32, run: impl FnOnce(&Val<'a>, &Val<'a>) -> Res<'a>) -> Res<'a> {
        let left = self.eval(a);
        if let Err(e) = &left
            && e.is_end()
        {
            return left;
        }
        let right = self.eval(b);
        let result = match (&left, &right) {
            (Ok(a), Ok(b)) => run(a, b),
            (_, Err(e)) if e.is_end() => return right,
            (Err(e), _) | (_, Err(e)) => Err(e.clone()),
        };
        self.pay_call(cost, &[left.as_ref().ok(), right.as_ref().ok()], &result)?;
        result
    }

    #[inline]
    fn pay_call(&mut self, cost: Cost, args: &[Option<&Val<'a>>], result: &Res<'a>) -> Result<(), EvalError> {
        if let Err(e) = result
            && e.is_end()
            && cost != Cost::Output
        {
            return Err(e.clone());
        }
        match cost {
            Cost::Fixed(n) => self.pay(n),
            other => match other.crash(args) {
                Some(crash) => Err(crash),
                None => self.pay(other.count(args, result)),
            },
        }
    }

    #[inline]
    fn logic(&mut self, a: u32, b: u32, wins: bool) -> Res<'a> {
        let left = match self.eval(a) {
            Ok(Val::Bool(x)) if x == wins => return Ok(Val::Bool(wins)),
            Ok(Val::Bool(_)) => None,
            Err(e) if e.is_end() => return Err(e),
            Err(e) => Some(e),
            Ok(_) => Some(EvalError::no_overload()),
        };
        let right = match self.eval(b) {
            Ok(Val::Bool(x)) if x == wins => return Ok(Val::Bool(wins)),
            Ok(Val::Bool(_)) => None,
            Err(e) if e.is_end() => return Err(e),
            Err(e) => Some(e),
            Ok(_) => Some(EvalError::no_overload()),
        };
        match left.or(right) {
            Some(e) => Err(e),
            None => Ok(Val::Bool(!wins)),
        }
    }

    fn in_set(&mut self, a: u32, set: &Members) -> Res<'a> {
        let val = self.eval(a)?;
        set.has(&val).map(Val::Bool)
    }

    /// A path that is evaluated for itself.
    #[inline]
    fn attr(&mut self, attr: &'a Attr) -> Res<'a> {
        let result = self.resolve(attr);
        if let Err(e) = &result
            && e.is_end()
        {
            return result;
        }
        if !matches!(attr.base, Base::Either { .. }) {
            self.pay(1)?;
        }
        result
    }

    fn has(&mut self, attr: &'a Attr) -> Res<'a> {
        match self.resolve(attr)? {
            Val::Optional(of) => Ok(Val::Bool(of.is_some())),
            other => Ok(other),
        }
    }

    fn resolve(&mut self, attr: &'a Attr) -> Res<'a> {
        let base = match &attr.base {
            Base::Variable(slot) => match self.activation.variable(*slot as usize) {
                Some(val) => val?,
                None => {
                    let name = &self.program.variables[*slot as usize];
                    return Err(EvalError::new(format!("no such attribute(s): {name}")));
                }
            },
            Base::Local(slot) => self.local(*slot)?,
            Base::Node(node) => self.eval(*node)?,
            Base::Either { condition, then, or_else } => {
                let branch = match self.eval(*condition)? {
                    Val::Bool(true) => then,
                    Val::Bool(false) => or_else,
                    _ => return Err(EvalError::no_overload()),
                };
                return self.resolve(branch);
            }
        };
        // An optional is taken apart and made anew even if nothing follows, and loses its schema by it.
        if attr.path.is_empty() && !matches!(base, Val::Optional(_)) {
            return Ok(base);
        }
        self.follow(base, &attr.path)
    }

    #[inline]
    fn local(&mut self, slot: u32) -> Res<'a> {
        match &self.locals[slot as usize] {
            Some(val) => val.clone(),
            None => {
                self.init(slot)?;
                self.locals[slot as usize].clone().unwrap_or(Ok(Val::Null))
            }
        }
    }

    /// An accumulator is evaluated when it is first asked for.
    fn init(&mut self, slot: u32) -> Result<(), EvalError> {
        if self.locals[slot as usize].is_some() {
            return Ok(());
        }
        let val = match self.program.inits[slot as usize] {
            Some(node) => self.eval(node),
            None => Ok(Val::Null),
        };
        // What is empty will grow, so it must be its own.
        let val = match val {
            Err(e) if e.is_end() => return Err(e),
            Ok(Val::ListRef(list)) if list.items.is_empty() => Ok(Val::List(Arc::new(List::flat(Vec::new())))),
            Ok(Val::MapRef(map)) if map.is_empty() => Ok(Val::Map(Arc::new(Map::with_capacity(0)))),
            other => other,
        };
        self.locals[slot as usize] = Some(val);
        Ok(())
    }

    fn follow(&mut self, base: Val<'a>, path: &'a [Step]) -> Res<'a> {
        let (mut val, mut optional) = match base {
            Val::Optional(None) => return Ok(Val::Optional(None)),
            Val::Optional(Some(of)) => ((*of).clone().plain(), true),
            other => (other, false),
        };
        for step in path {
            optional |= step.optional;
            match self.step(&val, step, optional) {
                Ok(Found::Value(next)) => {
                    self.pay(1)?;
                    val = next;
                }
                Ok(Found::Absent) => return Ok(Val::Optional(None)),
                Err(e) if e.is_end() => return Err(e),
                Err(e) => {
                    // What fails is paid for, unless it was only asked whether it is there.
                    if !optional || step.test {
                        self.pay(1)?;
                    }
                    return Err(e);
                }
            }
        }
        Ok(if optional { Val::some(val) } else { val })
    }

    #[inline]
    fn step(&mut self, val: &Val<'a>, step: &'a Step, optional: bool) -> Result<Found<'a>, EvalError> {
        let found = match &step.key {
            StepKey::Field(field) => {
                if let Val::Json(Value::Object(map), declared) = val {
                    match declared {
                        None => map.get_with(field.head, &field.name).map(crate::value::json_val),
                        Some(declared) => match (&declared.kind, &field.known) {
                            (crate::declared::MemberKind::Object(object), Some((known, at, head)))
                                if Arc::ptr_eq(object, known) =>
                            {
                                let field = &object.fields[*at];
                                crate::value::member(map.get_with(*head, &field.property), &field.declared)?
                            }
                            (crate::declared::MemberKind::Escaped, _) => {
                                crate::value::escaped_member(map, &field.name, declared)
                            }
                            _ => val.as_map().map_or(Ok(None), |map| map.find_str(&field.name))?,
                        },
                    }
                } else {
                    look_up(val, &Val::Str(&field.name), step.test || optional)?
                }
            }
            StepKey::Made(name) => made_field(val, name, step.test)?,
            StepKey::Const(key) => look_up(val, &borrow(key), step.test || optional)?,
            StepKey::Path(attr) => {
                let key = self.resolve(attr)?;
                check_path(&key, attr)?;
                look_up(val, &key, step.test || optional)?
            }
            StepKey::Node(node) => {
                let key = self.eval(*node)?;
                check_key(&key)?;
                look_up(val, &key, step.test || optional)?
            }
        };
        match found {
            Some(found) if step.test && !optional => {
                drop(found);
                Ok(Found::Value(Val::Bool(true)))
            }
            Some(found) => Ok(Found::Value(found)),
            None if step.test && !optional => Ok(Found::Value(Val::Bool(false))),
            None if optional => Ok(Found::Absent),
            None => Err(missing(step)),
        }
    }

    /// The first argument that is an error ends the call without a cost.
    fn pattern(&mut self, pattern: &'a Pattern) -> Res<'a> {
        let text = self.eval(pattern.args[0])?;
        let most = pattern.args.get(2).map(|most| self.eval(*most)).transpose()?;
        let result = match pattern.compiled() {
            Compiled::Matcher(matcher) => match text.as_str() {
                Some(text) => matcher.is_match(text).map(Val::Bool).map_err(EvalError::new),
                None => Err(EvalError::no_overload()),
            },
            Compiled::Finder(finder) if pattern.kind == PatternKind::Find => patterns::find(finder, &text),
            Compiled::Finder(finder) => match most {
                None => patterns::find_all(finder, &text, -1),
                Some(Val::Int(most)) => patterns::find_all(finder, &text, most),
                Some(_) => Err(EvalError::no_overload()),
            },
            Compiled::Failed(why) => Err(EvalError::new(why.clone())),
        };
        self.pay_call(pattern.cost, &[Some(&text), Some(&Val::Str(&pattern.text))], &result)?;
        result
    }

    fn call(&mut self, call: &'a Call) -> Res<'a> {
        if call.many {
            return self.call_many(call);
        }
        let function = &*call.function;
        match (&*call.args, call.overloads.first()) {
            ([x], Some(Overload { run: Run::Unary(run), args })) => {
                let guard = args.as_deref();
                self.unary(call.cost, *x, |x| match guard {
                    Some([t]) if !fits(t, x) => Err(no_signature(function, &[x])),
                    _ => run(x),
                })
            }
            ([a, b], Some(Overload { run: Run::Binary(run), args })) => {
                let guard = args.as_deref();
                self.binary(call.cost, *a, *b, |a, b| match guard {
                    Some([s, t]) if !fits(s, a) || !fits(t, b) => Err(no_signature(function, &[a, b])),
                    _ => run(a, b),
                })
            }
            _ => self.call_many(call),
        }
    }

    fn call_many(&mut self, call: &'a Call) -> Res<'a> {
        let mut args = Vec::with_capacity(call.args.len());
        for (i, node) in call.args.iter().enumerate() {
            match self.eval(*node) {
                Ok(val) => args.push(val),
                Err(e) if e.is_end() => return Err(e),
                Err(e) => {
                    // The cost is counted if all arguments were evaluated.
                    if i + 1 == call.args.len() {
                        let mut refs: Vec<Option<&Val<'a>>> = args.iter().map(Some).collect();
                        refs.push(None);
                        let result = Err(e);
                        self.pay_call(call.cost, &refs, &result)?;
                        return result;
                    }
                    return Err(e);
                }
            }
        }
        let result = dispatch(call, &args);
        let refs: Vec<Option<&Val<'a>>> = args.iter().map(Some).collect();
        self.pay_call(call.cost, &refs, &result)?;
        result
    }

    fn list(&mut self, elements: &[u32], optional: Option<&[bool]>) -> Res<'a> {
        let result = self.elements(elements, optional);
        if let Err(e) = &result
            && e.is_end()
        {
            return Err(e.clone());
        }
        self.pay(cost::LIST)?;
        Val::list(result?)
    }

    fn elements(&mut self, elements: &[u32], optional: Option<&[bool]>) -> Result<Vec<Val<'a>>, EvalError> {
        let mut items = Vec::with_capacity(elements.len());
        for (i, element) in elements.iter().enumerate() {
            let val = self.eval(*element)?;
            if !optional.is_some_and(|o| o[i]) {
                items.push(val);
                continue;
            }
            match val {
                Val::Optional(Some(of)) => items.push((*of).clone()),
                Val::Optional(None) => {}
                other => {
                    let message = format!("cannot initialize optional list element from non-optional value {other}");
                    return Err(EvalError::new(message));
                }
            }
        }
        Ok(items)
    }

    fn map(&mut self, entries: &[(u32, u32, bool)]) -> Res<'a> {
        let result = self.entries(entries);
        if let Err(e) = &result
            && e.is_end()
        {
            return Err(e.clone());
        }
        self.pay(cost::MAP)?;
        Ok(Val::Map(Arc::new(result?)))
    }

    fn entries(&mut self, entries: &[(u32, u32, bool)]) -> Result<Map<'a>, EvalError> {
        let mut map = Map::with_capacity(entries.len());
        for (key, value, optional) in entries {
            let key = self.eval(*key)?;
            let value = self.eval(*value)?;
            match (optional, value) {
                (true, Val::Optional(Some(of))) => map.insert(key, (*of).clone())?,
                (true, Val::Optional(None)) => map.remove(&key)?,
                (true, other) => return Err(not_optional(&key.to_string(), &other)),
                (false, value) => map.insert(key, value)?,
            }
        }
        Ok(map)
    }

    fn structure(&mut self, name: &Arc<str>, fields: &'a [(Arc<str>, u32, bool)]) -> Res<'a> {
        let result = self.fields(fields);
        if let Err(e) = &result
            && e.is_end()
        {
            return Err(e.clone());
        }
        let result = result.and_then(|fields| make(name, fields));
        self.pay(cost::STRUCT)?;
        result
    }

    fn fields(&mut self, fields: &'a [(Arc<str>, u32, bool)]) -> Result<Vec<(Arc<str>, Val<'a>)>, EvalError> {
        let mut values: Vec<(Arc<str>, Val<'a>)> = Vec::with_capacity(fields.len());
        for (name, value, optional) in fields {
            let value = self.eval(*value)?;
            values.retain(|(known, _)| known != name);
            match (optional, value) {
                (true, Val::Optional(Some(of))) => values.push((name.clone(), (*of).clone())),
                (true, Val::Optional(None)) => {}
                (true, other) => return Err(not_optional(name, &other)),
                (false, value) => values.push((name.clone(), value)),
            }
        }
        values.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(values)
    }

    fn fold(&mut self, fold: &'a Fold) -> Res<'a> {
        let range = self.eval(fold.range)?;
        // A comprehension inside of another runs again and again; its variables start anew.
        self.locals[fold.accu as usize] = None;
        self.each(&range, fold.iter, fold.iter2, |machine| machine.iterate(fold))?;
        let result = self.eval(fold.result);
        self.locals[fold.accu as usize] = None;
        result
    }

    /// Gives the variables the elements one after the other, until a round says that it is over.
    #[inline]
    fn each(
        &mut self,
        range: &Val<'a>,
        iter: u32,
        iter2: Option<u32>,
        mut round: impl FnMut(&mut Self) -> Result<bool, EvalError>,
    ) -> Result<(), EvalError> {
        if let Some(list) = range.as_list() {
            for i in 0..list.len() {
                match iter2 {
                    Some(iter2) => {
                        self.locals[iter as usize] = Some(Ok(Val::Int(i as i64)));
                        self.locals[iter2 as usize] = Some(list.at(i));
                    }
                    None => self.locals[iter as usize] = Some(list.at(i)),
                }
                if !round(self)? {
                    break;
                }
            }
        } else if let Some(map) = range.as_map() {
            match iter2 {
                Some(iter2) => {
                    for (key, value) in map.entries() {
                        self.locals[iter as usize] = Some(Ok(key));
                        self.locals[iter2 as usize] = Some(value);
                        if !round(self)? {
                            break;
                        }
                    }
                }
                None => {
                    for key in map.keys() {
                        self.locals[iter as usize] = Some(Ok(key));
                        if !round(self)? {
                            break;
                        }
                    }
                }
            }
        } else if iter2.is_some() {
            let message = format!("unsupported comprehension range type: {}", range.go_type());
            return Err(EvalError::new(message));
        } else {
            return Err(EvalError::new(format!("got '{}', expected iterable type", range.go_type())));
        }
        Ok(())
    }

    /// Costs as much as the comprehension that it stands for: a condition and a step that look at the accumulator, and a
    /// result that is the accumulator.
    fn quantifier(&mut self, quantifier: &'a Quantifier) -> Res<'a> {
        let range = self.eval(quantifier.range)?;
        let Quantifier { iter, iter2, predicate, wins, .. } = *quantifier;
        // `exists` has a `!` more in its condition.
        let condition = if wins { 3 } else { 2 };
        let mut decided = false;
        let mut failed: Option<EvalError> = None;
        self.each(&range, iter, iter2, |machine| {
            machine.pay_one_by_one(condition)?;
            if decided {
                return Ok(false);
            }
            machine.pay(1)?;
            match machine.eval(predicate) {
                Ok(Val::Bool(answer)) if answer == wins => decided = true,
                Ok(Val::Bool(_)) => {}
                Err(e) if e.is_end() => return Err(e),
                Err(e) => failed = failed.take().or(Some(e)),
                Ok(_) => failed = failed.take().or_else(|| Some(EvalError::no_overload())),
            }
            Ok(true)
        })?;
        self.pay(1)?;
        match failed {
            _ if decided => Ok(Val::Bool(wins)),
            Some(e) => Err(e),
            None => Ok(Val::Bool(!wins)),
        }
    }

    /// One round; false if the condition says that it is over.
    fn iterate(&mut self, fold: &'a Fold) -> Result<bool, EvalError> {
        match self.eval(fold.condition) {
            Ok(Val::Bool(false)) => return Ok(false),
            Err(e) if e.is_end() => return Err(e),
            _ => {}
        }
        let next = self.eval(fold.step);
        if let Err(e) = &next
            && e.is_end()
        {
            return Err(e.clone());
        }
        self.locals[fold.accu as usize] = Some(next);
        Ok(true)
    }

    fn append(&mut self, accu: u32, item: u32) -> Res<'a> {
        self.init(accu)?;
        self.pay(1)?;
        let list = self.locals[accu as usize].take();
        let item = self.eval(item);
        let result = match (list, item) {
            (_, Err(e)) if e.is_end() => return Err(e),
            (Some(Err(e)), _) | (_, Err(e)) => Err(e),
            (Some(Ok(Val::List(mut list))), Ok(item)) if item.as_list().is_some() => {
                let target = Arc::make_mut(&mut list);
                let mut failed = None;
                for part in item.as_list().into_iter().flat_map(|l| l.iter()) {
                    if let Err(e) = part.and_then(|part| target.push(part)) {
                        failed = Some(e);
                        break;
                    }
                }
                match failed {
                    None => Ok(Val::List(list)),
                    Some(e) => Err(e),
                }
            }
            (Some(Ok(other)), Ok(item)) => crate::libraries::arithmetic::Arith::Add.apply(&other, &item),
            (None, Ok(item)) => Ok(item),
        };
        self.pay(1)?;
        result
    }

    fn insert(&mut self, accu: u32, key: u32, value: u32) -> Res<'a> {
        self.init(accu)?;
        self.pay(1)?;
        let map = self.locals[accu as usize].take();
        let map = match map {
            Some(map) => map?,
            None => Val::Map(Arc::new(Map::with_capacity(0))),
        };
        let key = self.eval(key)?;
        let value = self.eval(value);
        let result = match (map, value) {
            (_, Err(e)) if e.is_end() => return Err(e),
            (_, Err(e)) => Err(e),
            (Val::Map(mut map), Ok(value)) => {
                two_variables::put(Arc::make_mut(&mut map), key, value).map(|()| Val::Map(map))
            }
            _ => Err(EvalError::no_overload()),
        };
        self.pay(1)?;
        result
    }

    fn insert_all(&mut self, accu: u32, more: u32) -> Res<'a> {
        self.init(accu)?;
        self.pay(1)?;
        let map = self.locals[accu as usize].take();
        let more = self.eval(more);
        let result = match (map, more) {
            (_, Err(e)) if e.is_end() => return Err(e),
            (Some(Err(e)), _) | (_, Err(e)) => Err(e),
            (Some(Ok(Val::Map(mut map))), Ok(more)) => {
                two_variables::put_all(Arc::make_mut(&mut map), &more).map(|()| Val::Map(map))
            }
            _ => Err(EvalError::no_overload()),
        };
        self.pay(1)?;
        result
    }
}
