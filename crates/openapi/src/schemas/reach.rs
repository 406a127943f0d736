//! Which types a document needs: those that its paths name, and what these refer to.

use crate::published::Source;
use crate::scalars;
use kubelith_meta::Str;
use kubelith_schema::{Schema, Shape, StructType, TypeTable};
use std::collections::{BTreeSet, HashMap};

/// Everything that can be reached from `roots`, which stay in it. `written` are the schemas that are not types of
/// the table, by name.
pub fn reachable(roots: BTreeSet<Str>, table: &TypeTable, written: &HashMap<Str, Source>) -> BTreeSet<Str> {
    let mut found = roots.clone();
    let mut open: Vec<Str> = roots.into_iter().collect();
    while let Some(name) = open.pop() {
        let mut visit = |name: Str| {
            if !found.contains(&name) {
                found.insert(name.clone());
                open.push(name);
            }
        };
        match written.get(&name) {
            Some(source) => source.refers_to().into_iter().for_each(&mut visit),
            None => {
                if let Some(id) = table.find(&name) {
                    of_struct(table.get(id), table, &mut visit);
                }
            }
        }
    }
    found
}

fn of_struct(t: &StructType, table: &TypeTable, visit: &mut dyn FnMut(Str)) {
    for field in &t.fields {
        of_schema(&field.schema, table, visit);
    }
}

fn of_schema(schema: &Schema, table: &TypeTable, visit: &mut dyn FnMut(Str)) {
    match &schema.shape {
        Shape::Named(id) => visit(table.get(*id).name.clone()),
        Shape::Struct(t) => of_struct(t, table, visit),
        Shape::Map(inner) | Shape::List(inner) => of_schema(inner, table, visit),
        scalar => {
            if let Some(name) = scalars::name(scalar, table) {
                visit(name);
            }
        }
    }
}
