//! Tables of patches on a Deployment, and what kubectl's three-way patches must give.

use super::*;
use crate::json::tests::v;
use crate::testing::{deployment, random_object, text, types};
use kubelith_meta::Status;
use proptest::prelude::*;

/// Wraps pod spec members into a whole object.
fn pod(spec: &str) -> Value {
    v(&format!(r#"{{"spec":{{"template":{{"spec":{spec}}}}}}}"#))
}

fn patched(mut object: Value, patch: Value) -> Result<Value, PatchError> {
    apply(&mut object, patch, &deployment())?;
    Ok(object)
}

#[test]
fn pod_lists() {
    let table = [
        // New elements come first, known ones keep their place.
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"c"}]}"#,
            r#"{"containers":[{"name":"c"},{"name":"a"},{"name":"b"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a","image":"i"},{"name":"b"}]}"#,
            r#"{"containers":[{"name":"b","image":"j"}]}"#,
            r#"{"containers":[{"name":"a","image":"i"},{"name":"b","image":"j"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a","env":[{"name":"E1"},{"name":"E2"}]}]}"#,
            r#"{"containers":[{"name":"a","env":[{"name":"E2","value":"x"},{"name":"E3"}]}]}"#,
            r#"{"containers":[{"name":"a","env":[{"name":"E1"},{"name":"E2","value":"x"},{"name":"E3"}]}]}"#,
        ),
        // Deletion, also of what is not there.
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"containers":[{"$patch":"delete","name":"a"},{"$patch":"delete","name":"q"}]}"#,
            r#"{"containers":[{"name":"b"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"containers":[{"$patch":"replace"},{"name":"z"}]}"#,
            r#"{"containers":[{"name":"z"}]}"#,
        ),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":[]}"#, r#"{"containers":[{"name":"a"}]}"#),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":null}"#, r#"{}"#),
        // Lists without a merge strategy are replaced; so are members of another type.
        (r#"{"tolerations":[{"key":"a"}]}"#, r#"{"tolerations":[{"key":"b"}]}"#, r#"{"tolerations":[{"key":"b"}]}"#),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":"str"}"#, r#"{"containers":"str"}"#),
        (r#"{"containers":[{"name":"a"}]}"#, r#"{"containers":{"$patch":"replace"}}"#, r#"{}"#),
        // $setElementOrder.
        (
            r#"{"containers":[{"name":"a"},{"name":"b"},{"name":"c"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"b","image":"j"}]}"#,
            r#"{"containers":[{"name":"b","image":"j"},{"name":"a"},{"name":"c"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}]}"#,
            r#"{"containers":[{"name":"b"},{"name":"a"}]}"#,
        ),
        (r#"{}"#, r#"{"$setElementOrder/containers":[{"name":"b"}]}"#, r#"{}"#),
        (
            r#"{}"#,
            r#"{"$setElementOrder/containers":[{"name":"b"},{"name":"a"}],"containers":[{"name":"b"},{"$patch":"delete","name":"x"}]}"#,
            r#"{"containers":[{"name":"b"}]}"#,
        ),
        (
            r#"{"containers":[{"name":"a"},{"name":"s"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"n"},{"name":"a"}],"containers":[{"name":"n"},{"$patch":"delete","name":"s"}]}"#,
            r#"{"containers":[{"name":"n"},{"name":"a"}]}"#,
        ),
        // An element that is deleted and added anew counts where the deletion left room.
        (
            r#"{"containers":[{"name":"a","image":"old"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"},{"$patch":"delete","name":"a"}]}"#,
            r#"{"containers":[{"name":"b"},{"name":"a"}]}"#,
        ),
        // New elements under an empty $setElementOrder.
        (
            r#"{"containers":[{"name":"a"},{"name":"b"}]}"#,
            r#"{"$setElementOrder/containers":[],"containers":[{"name":"n"}]}"#,
            r#"{"containers":[{"name":"a"},{"name":"b"},{"name":"n"}]}"#,
        ),
        // $retainKeys.
        (
            r#"{"volumes":[{"name":"v","emptyDir":{}}]}"#,
            r#"{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/p"}}]}"#,
            r#"{"volumes":[{"name":"v","hostPath":{"path":"/p"}}]}"#,
        ),
        // Merge keys that occur twice: the first is meant, both count as named.
        (
            r#"{"containers":[{"name":"a","ports":[{"containerPort":1},{"containerPort":53,"protocol":"TCP"},{"containerPort":53,"protocol":"UDP"}]}]}"#,
            r#"{"containers":[{"name":"a","ports":[{"containerPort":53,"name":"d"}]}]}"#,
            r#"{"containers":[{"name":"a","ports":[{"containerPort":1},{"containerPort":53,"protocol":"TCP","name":"d"},{"containerPort":53,"protocol":"UDP"}]}]}"#,
        ),
        // Nulls in an element that is new stay for the decoder; in a member that is new they go.
        (
            r#"{"containers":[{"name":"a"}]}"#,
            r#"{"containers":[{"name":"z","image":null}]}"#,
            r#"{"containers":[{"name":"z","image":null},{"name":"a"}]}"#,
        ),
        (r#"{}"#, r#"{"containers":[{"name":"z","image":null}]}"#, r#"{"containers":[{"name":"z"}]}"#),
    ];
    for (object, patch, want) in table {
        let got = patched(pod(object), pod(patch)).unwrap_or_else(|e| panic!("{e}: {patch}"));
        assert_eq!(text(&got), text(&pod(want)), "{object} + {patch}");
    }
}

#[test]
fn maps_and_sets() {
    let table = [
        (
            r#"{"metadata":{"labels":{"k":"v","l":"w"}}}"#,
            r#"{"metadata":{"labels":{"k":null,"m":"n"}}}"#,
            r#"{"metadata":{"labels":{"l":"w","m":"n"}}}"#,
        ),
        (
            r#"{"metadata":{"labels":{"k":"v"}}}"#,
            r#"{"metadata":{"labels":{"$patch":"replace","r":"s"}}}"#,
            r#"{"metadata":{"labels":{"r":"s"}}}"#,
        ),
        (
            r#"{"metadata":{"labels":{"k":"v"}}}"#,
            r#"{"metadata":{"labels":{"$patch":"delete","r":"s"}}}"#,
            r#"{"metadata":{"labels":{}}}"#,
        ),
        (r#"{"metadata":{"name":"a"}}"#, r#"{"$patch":"replace","spec":{}}"#, r#"{"spec":{}}"#),
        (
            r#"{}"#,
            r#"{"metadata":{"labels":{"$retainKeys":["z"],"z":"1"}}}"#,
            r#"{"metadata":{"labels":{"$retainKeys":["z"],"z":"1"}}}"#,
        ),
        (
            r#"{"metadata":{"finalizers":["a","b"]}}"#,
            r#"{"metadata":{"finalizers":["c"]}}"#,
            r#"{"metadata":{"finalizers":["c","a","b"]}}"#,
        ),
        (
            r#"{"metadata":{"finalizers":["c","a","b"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a","q"]}}"#,
            r#"{"metadata":{"finalizers":["c","b"]}}"#,
        ),
        (
            r#"{"metadata":{"finalizers":["c","a"]}}"#,
            r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":null}}"#,
            r#"{"metadata":{}}"#,
        ),
        (r#"{"metadata":{}}"#, r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":["a"]}}"#, r#"{"metadata":{}}"#),
        (
            r#"{"metadata":{"finalizers":["a","b","s"]}}"#,
            r#"{"metadata":{"$setElementOrder/finalizers":["b","n","a"],"finalizers":["n"]}}"#,
            r#"{"metadata":{"finalizers":["b","n","a","s"]}}"#,
        ),
        (
            r#"{"metadata":{}}"#,
            r#"{"metadata":{"finalizers":["1","2","1"]}}"#,
            r#"{"metadata":{"finalizers":["1","2","1"]}}"#,
        ),
        (
            r#"{"spec":{"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2}}}}"#,
            r#"{"spec":{"strategy":{"$retainKeys":["type"],"type":"Recreate"}}}"#,
            r#"{"spec":{"strategy":{"type":"Recreate"}}}"#,
        ),
        (r#"{"a":1}"#, r#"null"#, r#"{"a":1}"#),
    ];
    for (object, patch, want) in table {
        assert_eq!(text(&patched(v(object), v(patch)).unwrap()), text(&v(want)), "{object} + {patch}");
    }
}

#[test]
fn a_field_with_strategy_replace_is_replaced() {
    let schema = types("type T\n selector S replace\n type S\n a string\n b string");
    let mut object = v(r#"{"selector":{"a":"1"}}"#);
    apply(&mut object, v(r#"{"selector":{"b":"2"}}"#), &schema).unwrap();
    assert_eq!(object, v(r#"{"selector":{"b":"2"}}"#));
}

#[test]
fn errors() {
    let containers = r#"{"containers":[{"name":"a"}],"restartPolicy":"x"}"#;
    let table = [
        (
            r#"{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"image":"yy","name":"b"}]}"#,
            500,
            "The order in patch list:\n[map[image:yy name:b]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (
            r#"{"$setElementOrder/containers":[{"name":"a"}],"containers":[{"name":"a"},{"$patch":"replace"}]}"#,
            500,
            "The order in patch list:\n[map[name:a] map[$patch:replace]]\n doesn't match $setElementOrder list:\n[map[name:a]]\n",
        ),
        (
            r#"{"containers":[{"image":"noname"}]}"#,
            500,
            "map: map[image:noname] does not contain declared merge key: name",
        ),
        (
            r#"{"containers":[{"$patch":"delete"}]}"#,
            500,
            "map: map[$patch:delete] does not contain declared merge key: name",
        ),
        (
            r#"{"containers":[{"name":"z","$patch":"bogus"}]}"#,
            500,
            "unknown patch type: bogus in map: map[$patch:bogus name:z]",
        ),
        (r#"{"$patch":5}"#, 500, "unknown patch type: %!s(int64=5) in map: map[$patch:5]"),
        (
            r#"{"containers":[{"name":"z","$patch":"merge"}]}"#,
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (r#"{"containers":[5]}"#, 500, "list element types are not identical: [[map[name:a]] [5]]"),
        (r#"{"$setElementOrder/containers":"x"}"#, 500, "expected a []interface {}, but received a string"),
        (r#"{"$setElementOrder/restartPolicy":[]}"#, 500, "expected a []interface {}, but received a string"),
        (r#"{"$setElementOrder/nodeSelector":[]}"#, 500, "expected slice or array type, but got: ptr"),
        (
            r#"{"$setElementOrder/nosuch":[]}"#,
            500,
            r#"unable to find api field in struct PodSpec for the json field "nosuch""#,
        ),
        (r#"{"$setElementOrderX":[]}"#, 400, "invalid patch format of setElementOrder list"),
        (r#"{"$deleteFromPrimitiveListX":[]}"#, 400, "invalid patch format of primitive list"),
        (r#"{"$retainKeys":"x"}"#, 400, "invalid patch format of retainKeys"),
        (r#"{"$retainKeys":["volumes"],"containers":[]}"#, 400, "invalid patch format of retainKeys"),
    ];
    for (patch, code, message) in table {
        let err = patched(pod(containers), pod(patch)).unwrap_err();
        assert_eq!((Status::from(err.clone()).code, err.to_string().as_str()), (code, message), "{patch}");
    }
    let err = patched(v("{}"), v("[]")).unwrap_err();
    assert_eq!(
        err,
        PatchError::BadRequest("json: cannot unmarshal array into Go value of type map[string]interface {}".into())
    );
}

#[test]
fn types_that_are_not_structs_hold_no_nested_merges() {
    let schema = types("type T\n data raw\n m map<S>\n type S\n a string");
    let table = [
        (r#"{"data":{"a":{}}}"#, r#"unable to find api field in struct RawExtension for the json field "a""#),
        (r#"{"m":{"a":{}}}"#, "merging an object in json but data type is not struct, instead is: map"),
    ];
    for (patch, want) in table {
        let mut object = v(patch);
        assert_eq!(apply(&mut object, v(patch), &schema).unwrap_err().to_string(), want);
    }
}

proptest! {
    #![proptest_config(crate::testing::cases(400))]

    #[test]
    fn an_empty_patch_changes_nothing(seed: u64) {
        let object = random_object(&deployment(), seed);
        prop_assert_eq!(patched(object.clone(), v("{}")).unwrap(), object);
    }

    /// kubectl apply on an object nobody else touched gives exactly what the user wrote.
    #[test]
    fn three_way_patch_gives_what_was_written(before: u64, after: u64) {
        let schema = deployment();
        let (applied, wanted) = (random_object(&schema, before), random_object(&schema, after));
        let patch = diff::three_way(&applied, &wanted, &applied, &schema);
        let got = patched(applied.clone(), patch.clone()).unwrap();
        prop_assert_eq!(text(&got), text(&wanted), "patch {}", text(&patch));
    }

    /// Over a live object that others added to, what the user wrote wins, and applying it again changes nothing.
    #[test]
    fn three_way_patch_over_drift_is_stable(before: u64, after: u64, live: u64) {
        let schema = deployment();
        let (applied, wanted) = (random_object(&schema, before), random_object(&schema, after));
        let live = random_object(&schema, live);
        let patch = diff::three_way(&applied, &wanted, &live, &schema);
        let got = patched(live, patch).unwrap();
        let again = diff::three_way(&wanted, &wanted, &got, &schema);
        prop_assert_eq!(patched(got.clone(), again.clone()).unwrap(), got, "second patch {}", text(&again));
    }
}
