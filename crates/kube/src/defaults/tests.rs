use super::*;
#[test]
fn dump() {
    let mut out = Vec::new();
    for d in &kubelith_catalog::builtin().descriptors { for v in &d.versions {
        let mut o = Vec::new();
        BUILTIN.defaulting.debug_paths(&v.schema.root, "", 0, &mut o);
        for p in o { out.push(format!("{}/{} {} {}", d.group, v.name, d.kind, p)); }
    }}
    std::fs::write("/tmp/kd/ours.txt", out.join("\n")).unwrap();
}
