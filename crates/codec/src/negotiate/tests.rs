use super::*;

fn pods() -> ResourceEndpoint<'static> {
    ResourceEndpoint { own: BUILT_IN, has_table: true }
}

fn gvk(g: &str, v: &str, k: &str) -> GroupVersionKind {
    GroupVersionKind::new(g, v, k)
}

#[test]
fn accept_clauses_are_sorted_as_the_reference_does() {
    let order = |header| parse_accept(header).iter().map(|c| format!("{}/{}", c.kind, c.subkind)).collect::<Vec<_>>();
    assert_eq!(order("a/b;q=0.5, c/d, */*, e/*"), ["c/d", "e/*", "*/*", "a/b"]);
    assert_eq!(order("*"), ["*/*"]);
    assert_eq!(order("garbage"), [""; 0]);
    assert_eq!(order("a/b/c, x/y/"), ["x/y"]);
    assert_eq!(order("text/html, */*;q=0.1"), ["text/html", "*/*"]);
    let c = &parse_accept(" application/json ; as = Table ;v=v1;g=;q=0.3;x=a=b;y==")[0];
    assert_eq!(c.params, [("as", "Table"), ("v", "v1"), ("y", "")]);
    assert_eq!((c.kind, c.subkind, c.quality), ("application", "json", 0.3));
    assert_eq!(parse_accept("a/b;q=nonsense")[0].quality, 0.0);
}

#[test]
fn output_follows_accept() {
    let kind =
        |accept: &str| output(accept, BUILT_IN, &pods()).map(|o| (o.format, o.convert)).map_err(|e| e.to_string());
    let refused = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
    let table = |v| Some(gvk("meta.k8s.io", v, "Table"));
    for (accept, want) in [
        ("", Ok((Format::Json, None))),
        ("application/json;q=0.5", Ok((Format::Json, None))),
        ("application/yaml", Ok((Format::Yaml, None))),
        ("application/vnd.kubernetes.protobuf,application/json", Ok((Format::Protobuf, None))),
        ("application/*", Ok((Format::Json, None))),
        ("text/html, */*;q=0.1", Ok((Format::Json, None))),
        ("text/html", Err(refused.to_owned())),
        ("garbage", Err(refused.to_owned())),
        ("APPLICATION/JSON", Err(refused.to_owned())),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Ok((Format::Json, table("v1")))),
        ("application/yaml;as=Table;v=v1beta1;g=meta.k8s.io", Ok((Format::Yaml, table("v1beta1")))),
        // Tables have no protobuf form.
        (
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io",
            Ok((Format::Json, table("v1"))),
        ),
        ("application/json;as=Table;v=v2;g=meta.k8s.io", Err(refused.to_owned())),
        ("application/json;as=Table;v=v2;g=meta.k8s.io, application/json", Ok((Format::Json, None))),
        ("application/json;as=Nonsense;v=v1;g=meta.k8s.io", Err(refused.to_owned())),
        (
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
            Ok((Format::Protobuf, Some(gvk("meta.k8s.io", "v1", "PartialObjectMetadataList")))),
        ),
        ("application/json;stream=watch", Ok((Format::Json, None))),
        ("application/json;stream=other", Err(refused.to_owned())),
        ("application/yaml;stream=watch", Err(refused.to_owned())),
        ("application/json;charset=utf-8", Ok((Format::Json, None))),
    ] {
        assert_eq!(kind(accept), want, "{accept}");
    }
    assert!(output("application/json;pretty=1", BUILT_IN, &pods()).unwrap().pretty);
    assert!(!output("application/json;pretty=true", BUILT_IN, &pods()).unwrap().pretty);
}

#[test]
fn custom_resources_have_no_protobuf_of_their_own() {
    let own = [Format::Json, Format::Yaml];
    let endpoint = ResourceEndpoint { own: &own, has_table: true };
    let format = |accept: &str| output(accept, BUILT_IN, &endpoint).map(|o| o.format);
    assert_eq!(format("application/vnd.kubernetes.protobuf,application/json"), Ok(Format::Json));
    assert_eq!(
        format("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"),
        Ok(Format::Protobuf)
    );
}

#[test]
fn watches_need_a_format_that_streams() {
    let watch = |accept: &str| output_stream(accept, BUILT_IN, &pods()).map(|o| o.format).map_err(|e| e.to_string());
    assert_eq!(watch("application/vnd.kubernetes.protobuf;stream=watch"), Ok(Format::Protobuf));
    assert_eq!(watch("application/json"), Ok(Format::Json));
    assert_eq!(
        watch("application/yaml"),
        Err("only the following media types are accepted: application/json;stream=watch, \
             application/vnd.kubernetes.protobuf;stream=watch"
            .into())
    );
    assert_eq!(Format::Json.watch_content_type(), Some("application/json"));
    assert_eq!(Format::Protobuf.watch_content_type(), Some("application/vnd.kubernetes.protobuf;stream=watch"));
}

#[test]
fn input_follows_content_type() {
    let refused = "the body of the request was in an unknown format - accepted media types include: \
                   application/json, application/yaml, application/vnd.kubernetes.protobuf";
    for (header, want) in [
        ("", Some(Format::Json)),
        ("application/json", Some(Format::Json)),
        ("Application/JSON; charset=utf-8", Some(Format::Json)),
        (" application/yaml ;", Some(Format::Yaml)),
        ("application/yaml; a=\"x;\\\"y\" ; b=c", Some(Format::Yaml)),
        ("application/vnd.kubernetes.protobuf", Some(Format::Protobuf)),
        ("text/plain", None),
        ("application/json; charset", None),
        ("application/json; a=b; a=c", None),
        ("application/json; a=\"b", None),
        ("application/json extra", None),
        ("application/", None),
        (";", None),
    ] {
        let got = input(header, BUILT_IN);
        match want {
            Some(format) => assert_eq!(got, Ok(format), "{header}"),
            None => assert_eq!(got.unwrap_err().to_string(), refused, "{header}"),
        }
    }
}

#[test]
fn routes_refuse_first() {
    let produces = media_types(BUILT_IN);
    for accept in ["", "*/*", "application/json;q=0.5", "text/html, */*;q=0.1", "application/yaml , text/html"] {
        assert_eq!(route_accepts(accept, &produces), Ok(()), "{accept}");
    }
    for accept in ["text/html", "application/*", "garbage", "text/plain, application/xml"] {
        assert_eq!(
            route_accepts(accept, &produces).unwrap_err().to_string(),
            "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, \
             application/vnd.kubernetes.protobuf",
            "{accept}"
        );
    }
    let patches = ["application/json-patch+json", "application/merge-patch+json"];
    for (content_type, method, ok) in [
        ("application/merge-patch+json; charset=utf-8", "PATCH", true),
        (" application/merge-patch+json", "PATCH", true),
        ("APPLICATION/MERGE-PATCH+JSON", "PATCH", false),
        ("application/json", "PATCH", false),
        ("", "PATCH", false),
        ("", "DELETE", true),
    ] {
        assert_eq!(route_consumes(content_type, method, &patches).is_ok(), ok, "{content_type} {method}");
    }
    assert_eq!(route_consumes("x/y", "POST", &[]), Ok(()));
    assert_eq!(RouteError::UnsupportedMediaType.to_string(), "415: Unsupported Media Type");
}

#[test]
fn people_get_indented_json() {
    for (query, agent, want) in [
        (None, "kubectl/v1.36", false),
        (None, "curl/8.0", true),
        (None, "Wget/1.21", true),
        (None, "Mozilla/5.0 (X11)", true),
        (Some("1"), "kubectl", true),
        (Some("true"), "kubectl", true),
        (Some("nope"), "curl/8.0", false),
        (Some("0"), "curl/8.0", false),
        (Some(""), "curl/8.0", true),
    ] {
        assert_eq!(wants_pretty(query, agent), want, "{query:?} {agent}");
    }
}

#[test]
fn aggregated_discovery_names_its_kind() {
    let mut o = Output::of(Format::Json);
    assert_eq!(o.media_type_with_kind(), "application/json");
    o.convert = Some(gvk("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList"));
    assert_eq!(o.media_type_with_kind(), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
}
