//! What a server is to be like.

use crate::runtime::ServerRuntime;
use crate::webhook::Answering;
use crate::{Decision, Error, Kubelith, Result, Review, Webhook};
use kubelith::plane::Plane;
use kubelith_auth::jwt::signer::Signer;
use kubelith_meta::random::MadeUp;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

const ADMIN: &str = "admin";
/// What a definition gets to be established: it takes less than a millisecond.
const ESTABLISHED_LIMIT: Duration = Duration::from_secs(30);
/// Between looks at it.
const LOOK: Duration = Duration::from_millis(1);

/// Controllers of kube-controller-manager that run in the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Controllers {
    /// Namespaces that are deleted go, owner references are followed, and so on.
    #[default]
    On,
    /// Once the start returned, nothing happens but what clients do.
    Off,
}

#[derive(Default)]
pub struct Builder {
    flags: Vec<String>,
    users: Vec<(String, Vec<String>)>,
    definitions: Vec<Definitions>,
    controllers: Controllers,
    clock: Option<String>,
    seed: Option<u64>,
    webhooks: Vec<(Webhook, Answering)>,
}

enum Definitions {
    /// A file of YAML or JSON, or a folder of them.
    At(PathBuf),
    Text(String),
}

impl Builder {
    /// A flag as the program has it: `--feature-gates=…`.
    pub fn flag(mut self, flag: impl Into<String>) -> Builder {
        self.flags.push(flag.into());
        self
    }

    /// A user who comes with a token ([`Kubelith::token_of`]), and is in these groups. May do what roles let them.
    pub fn user<G: Into<String>>(mut self, name: impl Into<String>, groups: impl IntoIterator<Item = G>) -> Builder {
        self.users.push((name.into(), groups.into_iter().map(Into::into).collect()));
        self
    }

    /// CustomResourceDefinitions, in a file or in all files of a folder. They are established before the start returns.
    pub fn definitions(mut self, at: impl AsRef<Path>) -> Builder {
        self.definitions.push(Definitions::At(at.as_ref().to_owned()));
        self
    }

    /// A CustomResourceDefinition as JSON or YAML.
    pub fn definition(mut self, text: impl Into<String>) -> Builder {
        self.definitions.push(Definitions::Text(text.into()));
        self
    }

    /// An admission webhook that the test answers. Its configuration is there before the start returns, after all definitions.
    pub fn webhook(
        mut self,
        webhook: Webhook,
        answer: impl Fn(&Review) -> Decision + Send + Sync + 'static,
    ) -> Builder {
        self.webhooks.push((webhook, Arc::new(answer)));
        self
    }

    pub fn controllers(mut self, controllers: Controllers) -> Builder {
        self.controllers = controllers;
        self
    }

    /// A clock that stands still until [`Kubelith::advance`] turns it, from now on.
    pub fn manual_clock(mut self) -> Builder {
        self.clock = Some("manual".to_owned());
        self
    }

    /// The same, from a given time on.
    pub fn manual_clock_at(mut self, time: SystemTime) -> Builder {
        self.clock = Some(kubelith_meta::Time::from(time).rfc3339());
        self
    }

    /// What the server makes up follows from this, and from what it is for: uids, generated names, addresses, ports and tokens of
    /// users are the same in every run. Keys are not, nor is what is signed with them.
    pub fn seed(mut self, seed: u64) -> Builder {
        self.seed = Some(seed);
        self
    }

    /// Starts the server; returns when it is ready.
    pub async fn start(self) -> Result<Kubelith> {
        let definitions = read(&self.definitions)?;
        let files = tempfile::Builder::new().prefix("kubelith-").tempdir().map_err(|e| Error(e.to_string()))?;
        let users = Users::new(self.users, &self.seed.map_or(MadeUp::Random, MadeUp::seeded));
        let write = |name: &str, content: &str| {
            let path = files.path().join(name);
            std::fs::write(&path, content).map(|()| path.display().to_string()).map_err(|e| Error(e.to_string()))
        };
        let key = write("service-accounts.key", &Signer::generate_pem()?)?;
        let mut flags = vec![
            "--storage-backend=memory".to_owned(),
            format!("--data-dir={}", files.path().join("data").display()),
            format!("--token-auth-file={}", write("tokens.csv", &users.csv())?),
            format!("--service-account-signing-key-file={key}"),
            "--enable-test-api".to_owned(),
        ];
        if !self.flags.iter().any(|flag| flag.starts_with("--authorization-")) {
            flags.push("--authorization-mode=Node,RBAC".to_owned());
        }
        if self.controllers == Controllers::Off {
            flags.push("--controllers=-*".to_owned());
        }
        flags.extend(self.clock.map(|clock| format!("--clock={clock}")));
        flags.extend(self.seed.map(|seed| format!("--random-seed={seed}")));
        flags.extend(self.flags);
        let runtime = Arc::new(ServerRuntime::new()?);
        let plane = runtime.run(async move { Plane::start(&flags).await }).await?;
        let mut server = Kubelith {
            plane,
            port: Mutex::default(),
            users: Arc::new(users),
            runtime,
            files: Arc::new(files),
            webhooks: Vec::new(),
        };
        for definition in definitions {
            server.establish(&definition).await?;
        }
        for (webhook, answer) in self.webhooks {
            server.add_webhook(&webhook, answer).await?;
        }
        Ok(server)
    }
}

/// The documents of files and texts.
fn read(definitions: &[Definitions]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for source in definitions {
        match source {
            Definitions::Text(text) => found.extend(documents(text)),
            Definitions::At(path) => found.extend(documents_at(path)?),
        }
    }
    Ok(found)
}

/// The documents of a text.
pub(crate) fn documents(text: &str) -> Vec<String> {
    let lines = |document: &&str| document.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    text.split("\n---").filter(lines).map(|document| document.trim_start_matches("---").to_owned()).collect()
}

/// The documents of a file, or of the files of a folder.
pub(crate) fn documents_at(path: &Path) -> Result<Vec<String>> {
    let failed = |e: std::io::Error| Error(format!("{}: {e}", path.display()));
    let mut paths = vec![path.to_owned()];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(failed)?.filter_map(|e| e.ok().map(|e| e.path()));
        let is_manifest = |path: &PathBuf| {
            path.extension().is_some_and(|kind| ["yaml", "yml", "json"].iter().any(|known| kind == *known))
        };
        paths = entries.filter(is_manifest).collect();
        paths.sort();
    }
    let mut found = Vec::new();
    for path in paths {
        found.extend(documents(&std::fs::read_to_string(&path).map_err(failed)?));
    }
    Ok(found)
}

impl Kubelith {
    /// Creates a CustomResourceDefinition and waits until it is established.
    async fn establish(&self, definition: &str) -> Result<()> {
        const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let made = self.send("POST", PATH, "application/yaml", definition.to_owned()).await?;
        if made.code != 201 {
            return Err(Error(format!("a definition was refused: {}", made.body["message"])));
        }
        let path = format!("{PATH}/{}", made.body["metadata"]["name"].as_str().unwrap_or_default());
        let end = tokio::time::Instant::now() + ESTABLISHED_LIMIT;
        loop {
            let found = self.get(&path).await?;
            let conditions = found.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is = |kind: &str, status: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == status);
            if is("Established", "True") {
                return Ok(());
            }
            if is("NamesAccepted", "False") || tokio::time::Instant::now() > end {
                return Err(Error(format!("{path} is not established: {conditions:?}")));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

/// Who has a token.
pub(crate) struct Users(Vec<User>);

struct User {
    name: String,
    token: String,
    groups: Vec<String>,
}

impl Users {
    fn new(named: Vec<(String, Vec<String>)>, made_up: &MadeUp) -> Users {
        let admin = (ADMIN.to_owned(), vec!["system:masters".to_owned()]);
        let with_token = |(name, groups): (String, Vec<String>)| {
            let token = made_up.uid(&["token", &name]).to_string();
            User { name, token, groups }
        };
        Users([admin].into_iter().chain(named).map(with_token).collect())
    }

    pub fn admin_token(&self) -> &str {
        &self.0[0].token
    }

    pub fn token_of(&self, name: &str) -> Option<&str> {
        // Later ones win, as with flags: a test may have an `admin` of its own.
        self.0.iter().rev().find(|user| user.name == name).map(|user| user.token.as_str())
    }

    /// As `--token-auth-file` reads it.
    fn csv(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let line = |user: &User| {
            let (name, groups) = (quoted(&user.name), quoted(&user.groups.join(",")));
            format!("{},{name},{},{groups}\n", user.token, quoted(&format!("{}-uid", user.name)))
        };
        self.0.iter().map(line).collect()
    }
}
