//! Which types fit together, and what that says of types that are not known yet.

use crate::types::Type;

/// What is known of type variables. A failed attempt is taken back.
#[derive(Debug, Default)]
pub struct Bindings {
    bound: Vec<Option<Type>>,
    /// What was changed since an attempt began, and what it was before.
    trail: Vec<(u32, Option<Type>)>,
}

impl Bindings {
    /// Some fresh variables in a row; the first one's number.
    pub fn fresh(&mut self, count: usize) -> u32 {
        let first = self.bound.len();
        self.bound.resize(first + count, None);
        first as u32
    }

    fn find(&self, of: &Type) -> Option<&Type> {
        match of {
            Type::Var(n) => self.bound[*n as usize].as_ref(),
            _ => None,
        }
    }

    fn bind(&mut self, var: &Type, to: Type) {
        if let Type::Var(n) = var {
            let old = self.bound[*n as usize].replace(to);
            self.trail.push((*n, old));
        }
    }

    /// Whether something of type `b` can be where `a` is wanted, or the other way round. Remembers what that means for
    /// variables in them.
    pub fn fits(&mut self, a: &Type, b: &Type) -> bool {
        self.attempt(|m| m.assignable(a, b))
    }

    /// Whether arguments fit parameters, all of them.
    pub fn fit_all<'a>(&mut self, args: &[Type], params: impl ExactSizeIterator<Item = &'a Type>) -> bool {
        args.len() == params.len() && self.attempt(|m| args.iter().zip(params).all(|(a, p)| m.assignable(a, p)))
    }

    fn attempt(&mut self, try_it: impl FnOnce(&mut Self) -> bool) -> bool {
        self.trail.clear();
        let fits = try_it(self);
        if !fits {
            while let Some((n, old)) = self.trail.pop() {
                self.bound[n as usize] = old;
            }
        }
        fits
    }

    fn assignable(&mut self, a: &Type, b: &Type) -> bool {
        if is_var(b) {
            match self.substitutes(a, b) {
                Fit::Yes => return true,
                Fit::Contradicts => return false,
                Fit::Recursive => {}
            }
        }
        if is_var(a) {
            return self.substitutes(b, a) == Fit::Yes;
        }
        if a.is_dynamic() || b.is_dynamic() {
            return true;
        }
        match (a, b) {
            (Type::Null, other) | (other, Type::Null) => takes_null(other),
            (Type::Type(_), _) => matches!(b, Type::Type(_)),
            (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => self.assignable(a, b),
            (Type::Map(a), Type::Map(b)) => self.assignable(&a.0, &b.0) && self.assignable(&a.1, &b.1),
            _ => same(a, b),
        }
    }

    /// Whether the variable `var` can stand for `of`. Of two types that fit, it stands for the more general one.
    fn substitutes(&mut self, of: &Type, var: &Type) -> Fit {
        if same(of, var) {
            return Fit::Yes;
        }
        if let Some(known) = self.find(var).cloned() {
            if same(of, &known) {
                return Fit::Yes;
            }
            if !self.assignable(of, &known) {
                return Fit::Contradicts;
            }
            let general = if less_specific(of, &known) { of.clone() } else { known };
            if !self.occurs(var, &general) {
                self.bind(var, general);
            }
            return Fit::Yes;
        }
        if self.occurs(var, of) {
            return Fit::Recursive;
        }
        self.bind(var, of.clone());
        Fit::Yes
    }

    /// Whether a variable is in a type, directly or through what other variables stand for.
    fn occurs(&self, var: &Type, within: &Type) -> bool {
        match within {
            Type::Var(_) => same(var, within) || self.find(within).is_some_and(|known| self.occurs(var, known)),
            Type::List(t) | Type::Optional(t) | Type::Type(Some(t)) => self.occurs(var, t),
            Type::Map(kv) => self.occurs(var, &kv.0) || self.occurs(var, &kv.1),
            _ => false,
        }
    }

    /// The type with what is known of its variables.
    pub fn resolve(&self, of: &Type) -> Type {
        self.substitute(of, Unbound::Keep)
    }

    /// The same, and what is not known is dyn.
    pub fn resolve_to_dyn(&self, of: &Type) -> Type {
        self.substitute(of, Unbound::Dyn)
    }

    fn substitute(&self, of: &Type, unbound: Unbound) -> Type {
        match of {
            Type::Var(_) => match self.find(of) {
                Some(known) => self.substitute(known, unbound),
                None if unbound == Unbound::Dyn => Type::Dyn,
                None => of.clone(),
            },
            Type::Param(_) if unbound == Unbound::Dyn => Type::Dyn,
            // What has nothing to be replaced in it is shared.
            _ if !has_vars(of) => of.clone(),
            Type::List(t) => Type::list(self.substitute(t, unbound)),
            Type::Optional(t) => Type::optional(self.substitute(t, unbound)),
            Type::Type(Some(t)) => Type::type_of(self.substitute(t, unbound)),
            Type::Map(kv) => Type::map(self.substitute(&kv.0, unbound), self.substitute(&kv.1, unbound)),
            _ => of.clone(),
        }
    }
}

#[derive(PartialEq, Eq)]
enum Fit {
    Yes,
    /// It stands for something else already.
    Contradicts,
    /// It would contain itself.
    Recursive,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Unbound {
    Keep,
    Dyn,
}

fn is_var(of: &Type) -> bool {
    matches!(of, Type::Var(_))
}

fn has_vars(of: &Type) -> bool {
    match of {
        Type::Var(_) | Type::Param(_) => true,
        Type::List(t) | Type::Optional(t) | Type::Type(Some(t)) => has_vars(t),
        Type::Map(kv) => has_vars(&kv.0) || has_vars(&kv.1),
        _ => false,
    }
}

/// The same type; a wrapper is the same as what it wraps.
pub fn same(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Wrapper(a), Type::Wrapper(b)) => a == b,
        (Type::Wrapper(scalar), other) | (other, Type::Wrapper(scalar)) => scalar.unwrapped() == *other,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => same(a, b),
        (Type::Type(Some(a)), Type::Type(Some(b))) => same(a, b),
        (Type::Map(a), Type::Map(b)) => same(&a.0, &b.0) && same(&a.1, &b.1),
        _ => a == b,
    }
}

/// The same type up to the names of variables.
pub fn equivalent(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::Var(_) | Type::Param(_), Type::Var(_) | Type::Param(_)) => true,
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => equivalent(a, b),
        (Type::Type(Some(a)), Type::Type(Some(b))) => equivalent(a, b),
        (Type::Map(a), Type::Map(b)) => equivalent(&a.0, &b.0) && equivalent(&a.1, &b.1),
        _ => same(a, b),
    }
}

fn takes_null(of: &Type) -> bool {
    use self::Type::{Any, Duration, Named, Null, Object, Optional, Timestamp, Wrapper};
    matches!(of, Null | Optional(_) | Object(_) | Named(_) | Any | Duration | Timestamp | Wrapper(_))
}

/// Whether the first type is the same as the second, or dyn where that is not.
pub fn less_specific(a: &Type, b: &Type) -> bool {
    let vague = |t: &Type| matches!(t, Type::Dyn | Type::Any | Type::Var(_) | Type::Param(_));
    if vague(a) {
        return true;
    }
    if vague(b) {
        return false;
    }
    match (a, b) {
        (Type::List(a), Type::List(b)) | (Type::Optional(a), Type::Optional(b)) => less_specific(a, b),
        (Type::Map(a), Type::Map(b)) => less_specific(&a.0, &b.0) && less_specific(&a.1, &b.1),
        (Type::Type(_), Type::Type(_)) => true,
        _ => same(a, b),
    }
}
