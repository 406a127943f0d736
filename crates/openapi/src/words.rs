//! Descriptions: those of the crate that carries them, and words of our own where it has none.

use super::meta;
use kubelith_descriptions::Descriptions;
use kubelith_schema::StructType;

/// Any kind: `apiVersion` and `kind` are described alike everywhere.
const SOME_KIND: &str = "io.k8s.api.core.v1.Pod";

/// Where to find the words for types, fields and parameters. Large: drop it when the document is made.
pub struct Words {
    descriptions: Descriptions,
}

impl Words {
    pub fn load() -> Words {
        Words { descriptions: Descriptions::load() }
    }

    pub fn of_type(&self, t: &StructType) -> Option<String> {
        if let Some(text) = self.of_name(&t.name) {
            let text = if t.name == meta::WATCH_EVENT { text.split("\n\n").next()? } else { text };
            return Some(text.to_owned());
        }
        let kind = t.name.rsplit('.').next().unwrap_or_default();
        let item = kind.strip_suffix("List").filter(|_| is_list(t))?;
        Some(format!("{kind} is a list of {item} objects."))
    }

    /// A type that is no struct of the catalogue.
    pub fn of_name(&self, name: &str) -> Option<&str> {
        self.descriptions.of_type(name)
    }

    pub fn of_field(&self, t: &StructType, field: &str) -> Option<&str> {
        if let Some(text) = self.descriptions.of_field(&t.name, field) {
            return Some(text);
        }
        match field {
            // The crate has this with the type.
            "object" if t.name == meta::WATCH_EVENT => Some(self.of_name(&t.name)?.split_once("\n\n")?.1.trim_end()),
            "apiVersion" | "kind" if t.embedded => self.descriptions.of_field(SOME_KIND, field),
            "metadata" if is_list(t) => Some("Standard list metadata."),
            "items" if is_list(t) => Some("The objects of the list."),
            _ => None,
        }
    }

    /// A field that every object has: `apiVersion`, `kind` or `metadata`.
    pub fn of_every_object(&self, field: &str) -> &str {
        self.descriptions.of_field(SOME_KIND, field).unwrap_or_default()
    }

    /// A query parameter, by the options kind that has it.
    pub fn parameter(&self, options: &str, name: &str) -> String {
        let described = self.descriptions.of_field(options, name);
        let described = described.or_else(|| own(options, name));
        described.or_else(|| self.descriptions.of_field(meta::DELETE_OPTIONS, name)).unwrap_or_default().to_owned()
    }
}

fn is_list(t: &StructType) -> bool {
    t.embedded && t.field("items").is_some()
}

fn own(options: &str, name: &str) -> Option<&'static str> {
    let proxy = options.ends_with("ProxyOptions");
    let text = match name {
        "pretty" => {
            "'true' asks for output with line breaks and indentation. Browsers, curl and wget get it unless they ask \
             for 'false'."
        }
        "allowWatchBookmarks" => {
            "Asks for BOOKMARK events, which carry nothing but a newer resourceVersion. They come when the server sees \
             fit, or never. Only for watches."
        }
        "continue" => {
            "The token that a list answered with, to get the part behind it. The other parameters must be those of the \
             first request. After some minutes a token expires (410); the error carries one that goes on from the \
             same place with newer objects. Not for watches."
        }
        "fieldSelector" => "Restricts the objects by their fields. Everything is selected by default.",
        "labelSelector" => "Restricts the objects by their labels. Everything is selected by default.",
        "limit" => {
            "The most objects that one answer may have. If there are more, metadata.continue of the answer is the token \
             for the next part; all parts together are one consistent list. A selector can leave parts with few objects \
             or none. Not for watches."
        }
        "resourceVersion" => {
            "Which versions may answer the request. See \
             https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions for details. Unset by \
             default."
        }
        "resourceVersionMatch" => {
            "How resourceVersion is meant in a list: Exact or NotOlderThan. See \
             https://kubernetes.io/docs/reference/using-api/api-concepts/#resource-versions for details. Unset by \
             default."
        }
        "sendInitialEvents" => {
            "Begins a watch with an event for every object there is, then a BOOKMARK with the annotation \
             k8s.io/initial-events-end, then the changes. Needs resourceVersionMatch=NotOlderThan."
        }
        "shardSelector" => {
            "Restricts the objects to a share of them: shardRange(object.metadata.uid, '0x0', '0x8000000000000000') \
             selects by the hash of a field, several ranges are joined by ||. Needs the feature gate \
             ShardedListAndWatch."
        }
        "timeoutSeconds" => "Ends the list or watch after this time, whatever happens on it.",
        "watch" => "Watches the objects: the answer is a stream of changes from resourceVersion on.",
        "fieldManager" => {
            "The name of the one who makes this change, at most 128 printable characters. An apply needs it; other \
             requests take it from the User-Agent by default."
        }
        "fieldValidation" => {
            "What to do with unknown and duplicate fields in the body: Ignore drops them silently, Warn (the default) \
             drops them with a warning, Strict refuses the request and names all of them."
        }
        "force" => "Takes over fields that others own when applying. Not allowed for other patches.",
        "path" if proxy => "The path of the request to pass on.",
        "command" => "The command to run and its arguments; it is not run in a shell.",
        "container" => "The container, if the pod has more than one.",
        "stdin" => "Connects the standard input. Defaults to false.",
        "stdout" => "Connects the standard output. Defaults to true.",
        "stderr" => "Connects the standard error. Defaults to true.",
        "tty" => "Gives the process a terminal. Defaults to false.",
        "ports" => "The ports to forward; needed if WebSockets are used.",
        "follow" => "Keeps the stream open and sends what is logged from now on. Defaults to false.",
        "insecureSkipTLSVerifyBackend" => {
            "Does not check the serving certificate of the kubelet, so that someone between could fake the log. For a \
             kubelet whose certificate is broken."
        }
        "limitBytes" => "Ends the log after this many bytes.",
        "previous" => "Reads the log of the container that was terminated before this one. Defaults to false.",
        "sinceSeconds" => "Shows what was logged in the last so many seconds.",
        "stream" => "Which stream to read: All (the default), Stdout or Stderr.",
        "tailLines" => "Shows the last so many lines.",
        "timestamps" => "Puts the time in front of every line. Defaults to false.",
        _ => return None,
    };
    Some(text)
}
