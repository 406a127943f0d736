//! Ingresses.

pub mod cells;
pub mod validate;

use kubelith_meta::Value;
use kubelith_meta::field::Path;
use kubelith_meta::names::ip_warnings;
use kubelith_meta::text::Quoted;
use kubelith_rules::Kind;
use kubelith_schema::lifecycle::{Generation, Part};

pub const INGRESS: Kind = Kind {
    group: "networking.k8s.io",
    plural: "ingresses",
    rules: validate::RULES,
    cells: cells::CELLS,

    generation: Generation::Spec,
    warnings_on_create: |_, ingress| {
        const ANNOTATION: &str = "kubernetes.io/ingress.class";
        let annotated = ingress.meta().annotation(ANNOTATION).is_some();
        if !annotated || ingress.at(&["spec", "ingressClassName"]).is_some() {
            return Vec::new();
        }
        let name = Quoted(ANNOTATION);
        vec![format!("annotation {name} is deprecated, please use 'spec.ingressClassName' instead")]
    },
    warnings_on_update: |_, part, ingress, _| {
        let addresses = ingress.at(&["status", "loadBalancer", "ingress"]).and_then(Value::as_array);
        let addresses = if part == Part::Status { addresses.unwrap_or(&[]) } else { &[] };
        let named = addresses.iter().enumerate().map(|(i, a)| (format!("status.loadBalancer.ingress[{i}]"), a));
        named.flat_map(|(path, a)| ip_warnings(a.str_at(&["ip"]), &Path::new(&path))).collect()
    },
    ..Kind::PLAIN
};
