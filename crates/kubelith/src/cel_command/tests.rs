use super::*;

const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  names: {kind: Box, plural: boxes}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: self.min <= self.max
              message: min must not be above max
            properties:
              min: {type: integer}
              max: {type: integer}
              tags: {type: array, maxItems: MANY, items: {type: string, maxLength: 100}}
            RULES
"#;

const POLICY: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: few}
spec:
  matchConditions: [{name: a, expression: "object.kind == 'Box'"}]
  variables: [{name: max, expression: object.spec.max}]
  validations:
  - {expression: variables.max < 5, message: too many}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpus}
spec: {selectors: [{cel: {expression: 'cel.bind(a, device.attributes["gpu.example.com"], a.model == "x")'}}]}
"#;

fn run(action: &str, files: &[(&str, &str)], more: &[&str]) -> Result<(bool, String), String> {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    for (name, content) in files {
        std::fs::write(path(name), content).unwrap();
    }
    let mut words = vec![action.to_owned()];
    words.extend(more.iter().map(|word| match word.strip_prefix('@') {
        Some(name) => path(name),
        None => (*word).to_owned(),
    }));
    let report = execute(&parse(&words)?.unwrap())?;
    Ok((report.fine, report.text.replace(&format!("{}/", dir.path().display()), "")))
}

fn definition(many: &str, rules: &str) -> String {
    DEFINITION.replace("MANY", many).replace("RULES", rules)
}

#[test]
fn command_lines() {
    let parse = |line: &str| parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(parse(""), Ok(None));
    assert_eq!(parse("check --help"), Ok(None));
    let command = parse("eval a b --object c --object=d --old-object e --params f").unwrap().unwrap();
    assert_eq!((command.action, command.files.len(), command.objects.len()), (Action::Eval, 2, 2));
    assert_eq!((command.old, command.params), (vec!["e".into()], Some("f".into())));
    for (line, why) in [
        ("check", "no file is given"),
        ("eval a", "eval needs --object"),
        ("check a --object b", "--object, --old-object and --params are for eval"),
        ("nonsense a", "unknown command: cel nonsense a"),
        ("check a --force", "unknown flag: --force"),
        ("check a --object", "flag needs an argument: --object"),
    ] {
        let error = parse(line).unwrap_err();
        assert!(error.starts_with(why), "{line}: {error}");
    }
}

#[test]
fn definitions_are_checked() {
    let good = definition("10", "");
    let (fine, text) = run("check", &[("crd.yaml", &good)], &["@crd.yaml"]).unwrap();
    assert!(fine, "{text}");
    assert!(text.starts_with("crd.yaml: CustomResourceDefinition/boxes.example.com\n"), "{text}");
    assert!(text.contains("properties[spec].x-kubernetes-validations[0].rule: ok"), "{text}");
    assert!(text.contains("bool, estimated cost 5 of 10000000"), "{text}");
    assert!(text.ends_with("1 expressions, 0 wrong\n"), "{text}");

    let broken = good.replace("self.min <= self.max", "self.min <= self.most");
    let (fine, text) = run("check", &[("crd.yaml", &broken)], &["@crd.yaml"]).unwrap();
    assert!(!fine);
    assert!(text.contains("ERROR: <input>:1:17: undefined field 'most'\n"), "{text}");
    assert!(text.contains("| ................^"), "{text}");

    let dear = good
        .replace("self.min <= self.max", "self.tags.all(a, self.tags.all(b, a == b))")
        .replace("maxItems: 10", "maxItems: 5000");
    let (fine, text) = run("cost", &[("crd.yaml", &dear)], &["@crd.yaml"]).unwrap();
    assert!(!fine);
    assert!(text.contains("rule: too expensive"), "{text}");
    assert!(text.contains("self.tags.all(b, a == b)"), "{text}");
    assert_eq!(
        run("check", &[("x.yaml", "kind: Pod\n")], &["@x.yaml"]),
        Err("there are no expressions in these files".into())
    );
}

#[test]
fn objects_are_held_against_definitions() {
    let good = definition("10", "");
    let object = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\nspec: {min: MIN, max: 3}\n";
    let files = |min: &str| [("crd.yaml", good.clone()), ("box.yaml", object.replace("MIN", min))];
    let run = |min: &str| {
        let files = files(min);
        let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
        run("eval", &files, &["@crd.yaml", "--object", "@box.yaml"]).unwrap()
    };
    let (fine, text) = run("1");
    assert!(fine, "{text}");
    assert!(text.ends_with("1 looked at, 0 broken\n"), "{text}");
    let (fine, text) = run("4");
    assert!(!fine);
    assert!(text.contains("spec: Invalid value: min must not be above max"), "{text}");
}

#[test]
fn policies_and_devices() {
    let (fine, text) = run("check", &[("p.yaml", POLICY)], &["@p.yaml"]).unwrap();
    assert!(fine, "{text}");
    assert!(text.ends_with("4 expressions, 0 wrong\n"), "{text}");
    let object = "apiVersion: example.com/v1\nkind: KIND\nmetadata: {name: a}\nspec: {max: 7}\n";
    let slice = r#"{"apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice","metadata":{"name":"s"},"spec":{
        "driver":"gpu.example.com","devices":[{"name":"one","attributes":{"model":{"string":"x"}}},
        {"name":"two","attributes":{"model":{"string":"y"}}}]}}"#;
    let eval = |object: &str| {
        let files = [("p.yaml", POLICY), ("o.yaml", object)];
        run("eval", &files, &["@p.yaml", "--object", "@o.yaml"]).unwrap()
    };
    let (fine, text) = eval(&object.replace("KIND", "Box"));
    assert!(!fine);
    assert!(text.contains("spec.validations[0].expression: false (cost "), "{text}");
    assert!(text.contains("): too many\n"), "{text}");
    let (fine, text) = eval(&object.replace("KIND", "Bag"));
    assert!(fine, "{text}");
    assert!(text.contains("spec.matchConditions[0].expression: false, so the rest is not looked at"), "{text}");
    let (_, text) = eval(slice);
    assert!(text.contains("spec.selectors[0].cel.expression: one: true\n"), "{text}");
    assert!(text.contains("spec.selectors[0].cel.expression: two: false\n"), "{text}");
}
