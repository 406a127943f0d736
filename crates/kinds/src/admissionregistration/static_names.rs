//! Names that are reserved for configuration in files.

use kubelith_meta::Value;
use kubelith_meta::field::{Error, Path};
use kubelith_meta::text::Quoted;
use kubelith_rules::Kind;

/// Names that look like those of configuration in files are taken with a warning, or refused where there is such configuration.
pub const fn unlike_static(mut kind: Kind) -> Kind {
    kind.variants = &[("ManifestBasedAdmissionControlConfig", without_static)];
    kind.warnings_on_create = |_, object| static_name_warnings(object);
    kind.warnings_on_update = |_, _, object, _| static_name_warnings(object);
    kind
}

fn without_static(mut kind: Kind) -> Kind {
    kind.validate = |_, object| {
        let path = Path::new("metadata");
        let error = |why| Error::invalid(&path.child("name"), object.meta().name(), why);
        reserved_for_files(object).map(error).into_iter().collect()
    };
    kind.warnings_on_create = |_, _| Vec::new();
    kind.warnings_on_update = |_, _, _, _| Vec::new();
    kind
}

fn static_name_warnings(object: &Value) -> Vec<String> {
    reserved_for_files(object).map(|why| format!("metadata.name: {why}")).into_iter().collect()
}

fn reserved_for_files(object: &Value) -> Option<String> {
    const SUFFIX: &str = ".static.k8s.io";
    object.meta().name().ends_with(SUFFIX).then(|| {
        format!(
            "names ending with {} are reserved for static manifest-based configurations and cannot be managed via the API",
            Quoted(SUFFIX)
        )
    })
}
