//! What a library declares: functions with their overloads, and constants. Libraries are plain lists of these;
//! [`Functions`] is what an environment makes of them, once.

use crate::types::Type;
use std::collections::HashMap;
use std::sync::Arc;

/// A function of a library. The same function may be declared by several libraries; their overloads are put together.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: &'static str,
    pub overloads: Vec<Overload>,
}

#[derive(Debug, Clone)]
pub struct Overload {
    /// As cel-go names it: `string_to_timestamp`. Costs and implementations go by it.
    pub id: &'static str,
    /// `x.f(y)`: the first argument is `x`.
    pub receiver: bool,
    pub args: Vec<Type>,
    pub result: Type,
    /// The type parameters in `args` and `result`, in the order in which they appear.
    pub params: Vec<&'static str>,
    pub generic: bool,
}

impl Function {
    pub fn new(name: &'static str, overloads: Vec<Overload>) -> Function {
        Function { name, overloads }
    }
}

impl Overload {
    /// `f(x, y)`.
    pub fn global(id: &'static str, args: impl Into<Vec<Type>>, result: Type) -> Overload {
        Overload::of(id, false, args.into(), result)
    }

    /// `x.f(y)`; the first argument is the receiver.
    pub fn member(id: &'static str, args: impl Into<Vec<Type>>, result: Type) -> Overload {
        Overload::of(id, true, args.into(), result)
    }

    fn of(id: &'static str, receiver: bool, args: Vec<Type>, result: Type) -> Overload {
        let mut params = Vec::new();
        for of in args.iter().chain([&result]) {
            collect_params(of, &mut params);
        }
        let generic = !params.is_empty();
        Overload { id, receiver, args, result, params, generic }
    }
}

fn collect_params(of: &Type, found: &mut Vec<&'static str>) {
    match of {
        Type::Param(name) if !found.contains(name) => found.push(name),
        Type::List(t) | Type::Optional(t) | Type::Type(Some(t)) => collect_params(t, found),
        Type::Map(kv) => {
            collect_params(&kv.0, found);
            collect_params(&kv.1, found);
        }
        _ => {}
    }
}

/// The most overloads one function may have: candidates of a call are a set of bits.
pub const MAX_OVERLOADS: usize = 64;

/// The functions of an environment by name. Made once, and shared by all environments with the same libraries.
#[derive(Debug, Default)]
pub struct Functions {
    list: Vec<Function>,
    by_name: HashMap<&'static str, u32>,
    /// What names with a dot begin with: `optional`.
    namespaces: Vec<&'static str>,
}

impl Functions {
    /// Puts together what libraries declare. An overload that was declared before is left out.
    pub fn new(libraries: impl IntoIterator<Item = Vec<Function>>) -> Arc<Functions> {
        let mut all = Functions::default();
        for function in libraries.into_iter().flatten() {
            let index = *all.by_name.entry(function.name).or_insert_with(|| {
                all.list.push(Function { name: function.name, overloads: Vec::new() });
                (all.list.len() - 1) as u32
            });
            if let Some((namespace, _)) = function.name.split_once('.')
                && !all.namespaces.contains(&namespace)
            {
                all.namespaces.push(namespace);
            }
            let known = &mut all.list[index as usize].overloads;
            for overload in function.overloads {
                if !known.iter().any(|o| o.id == overload.id) {
                    known.push(overload);
                }
            }
            assert!(known.len() <= MAX_OVERLOADS, "{} has too many overloads", function.name);
        }
        Arc::new(all)
    }

    pub fn find(&self, name: &str) -> Option<(u32, &Function)> {
        let index = *self.by_name.get(name)?;
        Some((index, &self.list[index as usize]))
    }

    /// Whether functions have this name and a dot before theirs.
    pub fn is_namespace(&self, name: &str) -> bool {
        self.namespaces.contains(&name)
    }

    pub fn get(&self, index: u32) -> &Function {
        &self.list[index as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &Function> {
        self.list.iter()
    }
}
