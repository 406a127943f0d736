//! A container image, made without any container program: one file that is an OCI image layout and what `docker load` reads
//! at once, since both only differ in the documents that name the same blobs.
//!
//! There is nothing in it but the program, so the program must need nothing. The variant with a shell has a static busybox
//! beside it, for those who wrap the image or look around in it.

use super::pack::{gzip, sha256};
use super::release::Release;
use super::tree::{Owner, Tree};
use serde_json::{Value, json};

/// As images without a shell number the user that is not root.
const USER: u32 = 65532;

/// Commands of busybox that scripts around an image use.
const APPLETS: &[&str] = &[
    "ash", "awk", "base64", "basename", "cat", "chmod", "cp", "cut", "date", "dirname", "echo", "env", "false", "find",
    "grep", "head", "hostname", "id", "kill", "ls", "mkdir", "mktemp", "mv", "nc", "ps", "pwd", "rm", "sed", "sh",
    "sleep", "sort", "tail", "tar", "tee", "test", "touch", "tr", "true", "uname", "vi", "wc", "wget", "which",
    "xargs",
];

/// What is in the image.
pub struct Contents<'a> {
    pub server: &'a [u8],
    pub companion: &'a [u8],
    pub licence: &'a str,
    /// A static busybox, for the variant with a shell.
    pub shell: Option<&'a [u8]>,
}

/// The file. `kubelith:<version>` is its name, or `kubelith:<version>-shell`.
pub fn file(release: &Release, contents: &Contents<'_>) -> Result<Vec<u8>, String> {
    let layer = files(contents).tar("", release.made)?;
    let packed = gzip(&layer)?;
    let created = release.rfc3339()?;
    let config = config(release, &created, &sha256(&layer)).to_string().into_bytes();
    let tag = match contents.shell {
        Some(_) => format!("{}-shell", release.version),
        None => release.version.clone(),
    };
    let (config_sum, layer_sum) = (sha256(&config), sha256(&packed));
    let described = |kind: &str, sum: &str, size: usize| json!({"mediaType": kind, "digest": format!("sha256:{sum}"), "size": size});
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": described("application/vnd.oci.image.config.v1+json", &config_sum, config.len()),
        "layers": [described("application/vnd.oci.image.layer.v1.tar+gzip", &layer_sum, packed.len())],
        "annotations": labels(release, &created),
    });
    let manifest = manifest.to_string().into_bytes();
    let manifest_sum = sha256(&manifest);
    let mut index_entry = described("application/vnd.oci.image.manifest.v1+json", &manifest_sum, manifest.len());
    index_entry["platform"] = json!({"os": release.machine.system, "architecture": release.machine.architecture});
    // Both names that readers look for: the tag alone, and with the repository.
    index_entry["annotations"] = json!({
        "org.opencontainers.image.ref.name": tag,
        "io.containerd.image.name": format!("docker.io/library/kubelith:{tag}"),
    });
    let index = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [index_entry],
    });
    let blob = |sum: &str| format!("blobs/sha256/{sum}");
    let docker = json!([{
        "Config": blob(&config_sum), "RepoTags": [format!("kubelith:{tag}")], "Layers": [blob(&layer_sum)],
    }]);
    let mut tree = Tree::default();
    tree.file("oci-layout", 0o644, r#"{"imageLayoutVersion":"1.0.0"}"#);
    tree.file("index.json", 0o644, index.to_string());
    tree.file("manifest.json", 0o644, docker.to_string());
    tree.file(&blob(&config_sum), 0o644, config);
    tree.file(&blob(&layer_sum), 0o644, packed);
    tree.file(&blob(&manifest_sum), 0o644, manifest);
    tree.tar("", release.made)
}

fn files(contents: &Contents<'_>) -> Tree {
    let mut tree = Tree::default();
    tree.file("usr/bin/kubelith", 0o755, contents.server);
    tree.link("usr/bin/kube-apiserver", "kubelith");
    tree.file("usr/bin/kubelith-etcd", 0o755, contents.companion);
    tree.file("usr/share/doc/kubelith/LICENSE", 0o644, contents.licence);
    tree.file(
        "etc/passwd",
        0o644,
        format!("root:x:0:0:root:/:/bin/sh\nkubelith:x:{USER}:{USER}:Kubelith:/var/lib/kubelith:/bin/sh\n"),
    );
    tree.file("etc/group", 0o644, format!("root:x:0:\nkubelith:x:{USER}:\n"));
    tree.folder("tmp", 0o1777, Owner(0));
    tree.folder("var/lib/kubelith", 0o700, Owner(USER));
    if let Some(shell) = contents.shell {
        tree.file("bin/busybox", 0o755, shell);
        for applet in APPLETS {
            tree.link(&format!("bin/{applet}"), "busybox");
        }
    }
    tree
}

fn labels(release: &Release, created: &str) -> Value {
    json!({
        "org.opencontainers.image.title": "kubelith",
        "org.opencontainers.image.description": "A Kubernetes API server in one binary, with storage built in",
        "org.opencontainers.image.version": release.version,
        "org.opencontainers.image.revision": release.commit,
        "org.opencontainers.image.created": created,
        "org.opencontainers.image.licenses": "Apache-2.0",
    })
}

fn config(release: &Release, created: &str, layer: &str) -> Value {
    const SECOND: u64 = 1_000_000_000;
    json!({
        "created": created,
        "os": release.machine.system,
        "architecture": release.machine.architecture,
        "config": {
            "User": format!("{USER}:{USER}"),
            "Env": ["PATH=/usr/bin:/bin"],
            "Entrypoint": ["/usr/bin/kubelith"],
            "WorkingDir": "/var/lib/kubelith",
            "ExposedPorts": {"6443/tcp": {}},
            "Volumes": {"/var/lib/kubelith": {}},
            "StopSignal": "SIGTERM",
            "Healthcheck": {
                "Test": ["CMD", "/usr/bin/kubelith", "health"],
                "Interval": 10 * SECOND, "Timeout": 5 * SECOND, "StartPeriod": 10 * SECOND, "Retries": 3,
            },
            "Labels": labels(release, created),
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{layer}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::Machine;
    use crate::run::{capture, command};

    fn release() -> Release {
        let machine = Machine::of("x86_64-unknown-linux-musl").unwrap();
        Release { version: "0.2.0".into(), commit: "c0ffee".into(), made: 1_700_000_000, machine }
    }

    /// Follows the image from its first document to the files, as a container program does, with every digest checked.
    #[test]
    fn every_document_leads_to_the_next() {
        let contents = Contents { server: b"server", companion: b"etcd", licence: "l", shell: Some(b"busybox") };
        let bytes = file(&release(), &contents).unwrap();
        assert_eq!(bytes, file(&release(), &contents).unwrap(), "the same twice");
        let folder = std::env::temp_dir().join(format!("kubelith-image-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("image.tar"), &bytes).unwrap();
        let tar = |words: &[&str]| capture(command("tar").arg("-C").arg(&folder).args(words)).unwrap();
        tar(&["-xf", folder.join("image.tar").to_str().unwrap()]);
        let read = |path: &str| std::fs::read(folder.join(path)).unwrap();
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let blob = |descriptor: &Value| {
            let sum = descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap();
            let bytes = read(&format!("blobs/sha256/{sum}"));
            assert_eq!((sha256(&bytes).as_str(), bytes.len() as u64), (sum, descriptor["size"].as_u64().unwrap()));
            bytes
        };
        let index = json(&read("index.json"));
        let manifest = json(&blob(&index["manifests"][0]));
        let config = json(&blob(&manifest["config"]));
        let layer = blob(&manifest["layers"][0]);
        assert_eq!(config["config"]["User"], "65532:65532");
        let docker = json(&read("manifest.json"));
        assert_eq!(docker[0]["RepoTags"][0], "kubelith:0.2.0-shell");
        assert!(
            manifest["layers"][0]["digest"]
                .as_str()
                .unwrap()
                .ends_with(&docker[0]["Layers"][0].as_str().unwrap()[13..])
        );
        std::fs::write(folder.join("layer.tar.gz"), layer).unwrap();
        tar(&["-xzf", folder.join("layer.tar.gz").to_str().unwrap(), "--no-same-owner"]);
        assert_eq!(read("usr/bin/kube-apiserver"), b"server");
        assert_eq!(read("bin/sh"), b"busybox");
        let plain = capture(command("gzip").arg("-dc").arg(folder.join("layer.tar.gz")));
        let plain = plain.map(|text| sha256(text.as_bytes())).unwrap();
        assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{plain}"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
