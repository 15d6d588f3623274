//! Starts the real binary, listens to what it prints, and ends it.

use std::{
    fmt,
    io::{Read, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::http::{Answer, BOUND, Connection, Request};

/// The credentials of every service that these tests start. They are canaries: whatever a
/// service prints is searched for them when it ends.
pub(crate) const KEY: &str = "canary-key-8fQ2vZr61LxTn40pWd";
pub(crate) const TOKEN: &str = "canary-token-Jm5Yc93hRk7BsE2uGa";
pub(crate) const PHONE: &str = "15550001111";

pub(crate) const GALLEY: &str = env!("CARGO_BIN_EXE_galley");

/// How a service is to be started.
pub(crate) struct Launch {
    command: Command,
}

impl Launch {
    /// A service on a free port with its store in `dir`, whose first account has the canaries.
    pub(crate) fn new(dir: &Path) -> Self {
        Self::with(command(GALLEY), dir).canaries()
    }

    /// `command`, which is the service or starts it in its own place.
    pub(crate) fn with(command: Command, dir: &Path) -> Self {
        Self::at(&store(dir), command, dir)
    }

    /// The same with a store that is wherever its address says.
    pub(crate) fn at(store: &str, mut command: Command, dir: &Path) -> Self {
        command.current_dir(dir);
        command.args(["serve", "--listen", "127.0.0.1:0", "--store", store]);
        Self { command }
    }

    pub(crate) fn canaries(self) -> Self {
        self.variable("GALLEY_BOOTSTRAP_KEY", KEY)
            .variable("GALLEY_BOOTSTRAP_TOKEN", TOKEN)
            .variable("GALLEY_BOOTSTRAP_PHONE", PHONE)
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.command.args(flags);
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it and waits until it is ready.
    #[track_caller]
    pub(crate) fn start(mut self) -> Service {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap_or_else(|error| {
            panic!("{} cannot be started: {error}", self.command.get_program().display())
        });
        let printed = Heard::listen(child.stdout.take().unwrap());
        let log = Heard::listen(child.stderr.take().unwrap());
        let said = log.wait_for("its address", |text| address(text).is_some());
        let address = address(&said).unwrap();
        let service = Service { child, address, printed, log };
        // The socket is open from here on, so that this waits for nothing but readiness itself.
        assert_eq!(service.send(&Request::get("/readyz")).status, 200);
        service
    }
}

/// Reads the address from `listening on http://127.0.0.1:1234 with …`.
fn address(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("listening on http://")?;
    rest.split_once(' ')?.0.parse().ok()
}

/// A running service. It is killed when it is dropped.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) printed: Heard,
    pub(crate) log: Heard,
}

impl Service {
    /// Sends a request on a connection of its own.
    #[track_caller]
    pub(crate) fn send(&self, request: &Request) -> Answer {
        self.try_send(&request.bytes()).unwrap_or_else(|error| panic!("{error}: {request:?}"))
    }

    pub(crate) fn try_send(&self, bytes: &[u8]) -> std::io::Result<Answer> {
        let mut connection = Connection::open(self.address)?;
        connection.send(bytes)?;
        connection.answer()
    }

    /// Creates a template as the first account.
    #[track_caller]
    pub(crate) fn create(&self, document: &Value) -> Answer {
        self.send(&post(document))
    }

    #[track_caller]
    pub(crate) fn read(&self, id: &str) -> Answer {
        self.send(&get(id))
    }

    /// Demands that it takes and gives back a template: whatever came before has not hurt it.
    #[track_caller]
    pub(crate) fn is_well(&self, name: &str) {
        let made = self.create(&document(name, "All is well."));
        assert_eq!(made.status, 201, "{made:?}");
        let id = made.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(self.read(&id).json()["name"], name);
    }

    pub(crate) fn signal(&self, signal: &str) {
        let command = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Asks it to end and waits until it has.
    pub(crate) fn end(mut self) -> (ExitStatus, Duration) {
        let asked = Instant::now();
        self.signal("TERM");
        let status = self.wait();
        (status, asked.elapsed())
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.log.wait_for_end();
        self.child.wait().unwrap()
    }

    /// `kill -9`: gone when this returns, and all it said has been heard.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.log.wait_for_end();
        self.printed.wait_for_end();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if !std::thread::panicking() {
            self.log.wait_for_end();
            let said = self.log.text() + &self.printed.text();
            for word in [KEY, TOKEN, "panicked"] {
                assert!(!said.contains(word), "{word:?} in what the service printed:\n{said}");
            }
        }
    }
}

/// A command that goes on by itself. It is killed when it is dropped.
pub(crate) struct Background {
    child: Child,
    pub(crate) printed: Heard,
    pub(crate) log: Heard,
}

impl Background {
    /// Starts `galley` with these arguments on the store in `dir`.
    pub(crate) fn start(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = command(GALLEY);
        command.current_dir(dir).args(arguments).args(["--store", &store(dir)]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = Heard::listen(child.stdout.take().unwrap());
        let log = Heard::listen(child.stderr.take().unwrap());
        Self { child, printed, log }
    }

    /// Sends a signal and waits until it has ended.
    pub(crate) fn end(mut self, signal: &str) -> ExitStatus {
        let command = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
        self.log.wait_for_end();
        self.child.wait().unwrap()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process prints, as far as it has come.
pub(crate) struct Heard(Arc<(Mutex<Said>, Condvar)>);

#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    ended: bool,
}

impl Heard {
    fn listen(mut source: impl Read + Send + 'static) -> Self {
        let heard = Self(Arc::default());
        let theirs = Arc::clone(&heard.0);
        std::thread::spawn(move || {
            let (said, news) = &*theirs;
            let mut chunk = [0; 4_096];
            while let Ok(length @ 1..) = source.read(&mut chunk) {
                said.lock().unwrap().bytes.extend_from_slice(&chunk[..length]);
                news.notify_all();
            }
            said.lock().unwrap().ended = true;
            news.notify_all();
        });
        heard
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until what was said is enough; answers all of it.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, enough: impl Fn(&str) -> bool) -> String {
        let enough = |said: &Said| enough(&String::from_utf8_lossy(&said.bytes));
        let (said, news) = &*self.0;
        let waiting = |said: &mut Said| !said.ended && !enough(said);
        let (said, _) = news.wait_timeout_while(said.lock().unwrap(), BOUND, waiting).unwrap();
        let text = String::from_utf8_lossy(&said.bytes).into_owned();
        assert!(enough(&said), "the service did not say {what}, but:\n{text}");
        text
    }

    #[track_caller]
    fn wait_for_end(&self) {
        let (said, news) = &*self.0;
        let said = said.lock().unwrap();
        let (said, _) = news.wait_timeout_while(said, BOUND, |said| !said.ended).unwrap();
        assert!(said.ended, "it has not ended: {}", String::from_utf8_lossy(&said.bytes));
    }
}

/// Runs `galley` with these arguments on the store in `dir`, to its end.
pub(crate) fn galley(dir: &Path, arguments: &[&str]) -> Output {
    galley_at(&store(dir), dir, arguments)
}

/// The same with a store that is wherever its address says.
pub(crate) fn galley_at(store: &str, dir: &Path, arguments: &[&str]) -> Output {
    let mut command = command(GALLEY);
    command.current_dir(dir).args(arguments).args(["--store", store]);
    command.output().unwrap()
}

/// Runs `galley` where it has to succeed and answers in JSON.
#[track_caller]
pub(crate) fn galley_json(dir: &Path, arguments: &[&str]) -> Value {
    json_of(&galley(dir, &[arguments, &["--json"]].concat()))
}

/// What a command that has to succeed has answered in JSON.
#[track_caller]
pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A command that sees nothing of our environment but where programs are.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.stdin(Stdio::null());
    command
}

/// The address of the store in `dir`.
pub(crate) fn store(dir: &Path) -> String {
    format!("sqlite:{}", dir.join("galley.db").display())
}

/// Where the first account creates.
pub(crate) fn collection() -> String {
    format!("/api/v1.0/{PHONE}/{KEY}/message_templates")
}

/// A creation by the first account.
pub(crate) fn post(document: &Value) -> Request {
    raw_post(document.to_string())
}

/// A creation by the first account, whatever its body is.
pub(crate) fn raw_post(body: impl Into<Vec<u8>>) -> Request {
    authorized(Request::new("POST", collection()))
        .header("Content-Type", "application/json")
        .body(body)
}

/// Reading one template of the first account.
pub(crate) fn get(id: &str) -> Request {
    authorized(Request::get(format!("{}/{id}", collection())))
}

/// With the first account's token.
pub(crate) fn authorized(request: Request) -> Request {
    request.header("Authorization", &format!("Bearer {TOKEN}"))
}

/// A valid document.
pub(crate) fn document(name: &str, text: &str) -> Value {
    json!({
        "name": name,
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": true,
        "components": [{"type": "BODY", "text": text}],
    })
}

/// Asks again and again until it is so; fails if that takes longer than `bound`. Each question is
/// a request or more, which is pause enough.
#[track_caller]
pub(crate) fn until(bound: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < bound, "not within {bound:?}: {what}");
    }
}

/// Says a figure of a run, whether the test passes or not.
pub(crate) fn tell(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
