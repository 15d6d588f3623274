//! Starts the real binary, captures its output, and stops it.

use std::{
    fmt,
    io::{PipeWriter, Read, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStderr, Command, ExitStatus, Output, Stdio},
    sync::{Arc, Condvar, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::http::{Connection, Request, Response, TIMEOUT};

/// The credentials of the first account. They are canaries: when a service is dropped, its output
/// is searched for them.
pub(crate) const KEY: &str = "canary-key-8fQ2vZr61LxTn40pWd";
pub(crate) const TOKEN: &str = "canary-token-Jm5Yc93hRk7BsE2uGa";
pub(crate) const PHONE: &str = "15550001111";

pub(crate) const GALLEY: &str = env!("CARGO_BIN_EXE_galley");

/// Builds the command that starts a service.
pub(crate) struct Launch {
    command: Command,
}

impl Launch {
    /// A service on a free port with its store in `dir`. The first account has the canaries as
    /// credentials.
    pub(crate) fn new(dir: &Path) -> Self {
        Self::with(command(GALLEY), dir).canaries()
    }

    /// A service started by `command`, which is `galley` or replaces itself with `galley`.
    pub(crate) fn with(command: Command, dir: &Path) -> Self {
        Self::at(&store(dir), command, dir)
    }

    /// A service with the store at this URL.
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

    /// Starts the service and waits until it is ready.
    #[track_caller]
    pub(crate) fn start(self) -> Service {
        self.start_listening().ready()
    }

    /// Starts the service and waits until it listens, ready or not.
    #[track_caller]
    pub(crate) fn start_listening(mut self) -> Service {
        self.command.stdout(Stdio::piped());
        self.launch()
    }

    /// Starts the service with this pipe as its standard output, and waits until it is ready.
    #[track_caller]
    pub(crate) fn start_printing_to(mut self, stdout: PipeWriter) -> Service {
        self.command.stdout(stdout);
        self.launch().ready()
    }

    #[track_caller]
    fn launch(mut self) -> Service {
        self.command.stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap_or_else(|error| {
            panic!("{} cannot be started: {error}", self.command.get_program().display())
        });
        // The command keeps its end of a pipe open.
        drop(self.command);
        let printed = match child.stdout.take() {
            Some(stdout) => CapturedOutput::capture(stdout),
            None => CapturedOutput::capture(std::io::empty()),
        };
        let log = CapturedOutput::capture(child.stderr.take().unwrap());
        let output = log.wait_for("its address", |text| address(text).is_some());
        let address = address(&output).unwrap();
        Service { child, address, printed, log }
    }

    /// Starts the service, and reads its standard error no further than its address. The caller
    /// gets the rest.
    #[track_caller]
    pub(crate) fn start_unread(mut self) -> (Service, ChildStderr) {
        self.command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let printed = CapturedOutput::capture(child.stdout.take().unwrap());
        let mut stderr = child.stderr.take().unwrap();
        let (mut read, mut chunk) = (Vec::new(), [0; 4_096]);
        let address = loop {
            let length = stderr.read(&mut chunk).unwrap();
            read.extend_from_slice(&chunk[..length]);
            let text = String::from_utf8_lossy(&read);
            assert!(length > 0, "expected its address in the output:\n{text}");
            if let Some(address) = address(&text) {
                break address;
            }
        };
        let log = CapturedOutput::capture(std::io::empty());
        (Service { child, address, printed, log }, stderr)
    }
}

/// Reads the address from `listening on http://127.0.0.1:1234 with …`.
fn address(log: &str) -> Option<SocketAddr> {
    let (_, rest) = log.split_once("listening on http://")?;
    rest.split_once(' ')?.0.parse().ok()
}

/// A running service. Dropping it kills the process.
pub(crate) struct Service {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) printed: CapturedOutput,
    pub(crate) log: CapturedOutput,
}

impl Service {
    /// Sends a request on a new connection.
    #[track_caller]
    pub(crate) fn send(&self, request: &Request) -> Response {
        self.try_send(&request.bytes()).unwrap_or_else(|error| panic!("{error}: {request:?}"))
    }

    pub(crate) fn try_send(&self, bytes: &[u8]) -> std::io::Result<Response> {
        let mut connection = Connection::open(self.address)?;
        connection.send(bytes)?;
        connection.read_response()
    }

    /// Waits until the service is ready. Its socket is open already.
    #[track_caller]
    fn ready(self) -> Self {
        assert_eq!(self.send(&Request::get("/readyz")).status, 200);
        self
    }

    /// Creates a template as the first account.
    #[track_caller]
    pub(crate) fn create(&self, document: &Value) -> Response {
        self.send(&post(document))
    }

    #[track_caller]
    pub(crate) fn read(&self, id: &str) -> Response {
        self.send(&get(id))
    }

    /// Asserts that the service still works: creates a template and reads it back.
    #[track_caller]
    pub(crate) fn assert_works(&self, name: &str) {
        let created = self.create(&document(name, "Hello!"));
        assert_eq!(created.status, 201, "{created:?}");
        let id = created.json()["id"].as_str().unwrap().to_owned();
        assert_eq!(self.read(&id).json()["name"], name);
    }

    pub(crate) fn signal(&self, signal: &str) {
        let command = format!("kill -{signal} {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
    }

    /// Sends SIGTERM and waits for the exit. Returns the exit status and how long it took.
    pub(crate) fn end(mut self) -> (ExitStatus, Duration) {
        let signalled = Instant::now();
        self.signal("TERM");
        let status = self.wait();
        (status, signalled.elapsed())
    }

    /// Waits for the process to exit.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        self.log.wait_for_end();
        self.printed.wait_for_end();
        self.child.wait().unwrap()
    }

    /// Kills the process with SIGKILL, waits for its exit and captures the rest of its output.
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
            let output = self.log.text() + &self.printed.text();
            for word in [KEY, TOKEN, "panicked"] {
                assert!(!output.contains(word), "{word:?} in the output of the service:\n{output}");
            }
        }
    }
}

/// A command running in the background. Dropping it kills the process.
pub(crate) struct Background {
    child: Child,
    pub(crate) printed: CapturedOutput,
    pub(crate) log: CapturedOutput,
}

impl Background {
    /// Starts `galley` with these arguments on the store in `dir`.
    pub(crate) fn start(dir: &Path, arguments: &[&str]) -> Self {
        let mut command = command(GALLEY);
        command.current_dir(dir).args(arguments).args(["--store", &store(dir)]);
        Self::spawn(command)
    }

    /// Starts this command.
    pub(crate) fn spawn(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let printed = CapturedOutput::capture(child.stdout.take().unwrap());
        let log = CapturedOutput::capture(child.stderr.take().unwrap());
        Self { child, printed, log }
    }

    /// Sends a signal and waits for the process to exit.
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

/// The output of a process so far.
pub(crate) struct CapturedOutput(Arc<(Mutex<CaptureState>, Condvar)>);

#[derive(Default)]
struct CaptureState {
    bytes: Vec<u8>,
    ended: bool,
}

impl CapturedOutput {
    fn capture(mut source: impl Read + Send + 'static) -> Self {
        let captured = Self(Arc::default());
        let shared = Arc::clone(&captured.0);
        std::thread::spawn(move || {
            let (state, changed) = &*shared;
            let mut chunk = [0; 4_096];
            while let Ok(length @ 1..) = source.read(&mut chunk) {
                state.lock().unwrap().bytes.extend_from_slice(&chunk[..length]);
                changed.notify_all();
            }
            state.lock().unwrap().ended = true;
            changed.notify_all();
        });
        captured
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().bytes).into_owned()
    }

    /// Waits until the output satisfies `enough`. Returns all output so far.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, enough: impl Fn(&str) -> bool) -> String {
        let enough = |state: &CaptureState| enough(&String::from_utf8_lossy(&state.bytes));
        let (state, changed) = &*self.0;
        let waiting = |state: &mut CaptureState| !state.ended && !enough(state);
        let (state, _) =
            changed.wait_timeout_while(state.lock().unwrap(), TIMEOUT, waiting).unwrap();
        let text = String::from_utf8_lossy(&state.bytes).into_owned();
        assert!(enough(&state), "expected {what} in the output:\n{text}");
        text
    }

    #[track_caller]
    fn wait_for_end(&self) {
        let (state, changed) = &*self.0;
        let state = state.lock().unwrap();
        let (state, _) = changed.wait_timeout_while(state, TIMEOUT, |state| !state.ended).unwrap();
        assert!(state.ended, "the process did not exit: {}", String::from_utf8_lossy(&state.bytes));
    }
}

/// Runs `galley` with these arguments on the store in `dir` and waits for it to exit.
pub(crate) fn galley(dir: &Path, arguments: &[&str]) -> Output {
    galley_at(&store(dir), dir, arguments)
}

/// Runs `galley` with these arguments on the store at this URL and waits for it to exit.
pub(crate) fn galley_at(store: &str, dir: &Path, arguments: &[&str]) -> Output {
    let mut command = command(GALLEY);
    command.current_dir(dir).args(arguments).args(["--store", store]);
    command.output().unwrap()
}

/// Runs `galley --json`, asserts success and returns the parsed output.
#[track_caller]
pub(crate) fn galley_json(dir: &Path, arguments: &[&str]) -> Value {
    json_of(&galley(dir, &[arguments, &["--json"]].concat()))
}

/// Asserts that a command succeeded and parses its output as JSON.
#[track_caller]
pub(crate) fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A command with an empty environment except for `PATH`.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.stdin(Stdio::null());
    command
}

/// The URL of the store in `dir`.
pub(crate) fn store(dir: &Path) -> String {
    format!("sqlite:{}", dir.join("galley.db").display())
}

/// The path of the first account's templates.
pub(crate) fn collection() -> String {
    format!("/api/v1.0/{PHONE}/{KEY}/message_templates")
}

/// A create request of the first account.
pub(crate) fn post(document: &Value) -> Request {
    raw_post(document.to_string())
}

/// A create request of the first account with an arbitrary body.
pub(crate) fn raw_post(body: impl Into<Vec<u8>>) -> Request {
    authorized(Request::new("POST", collection()))
        .header("Content-Type", "application/json")
        .body(body)
}

/// A request for one template of the first account.
pub(crate) fn get(id: &str) -> Request {
    authorized(Request::get(format!("{}/{id}", collection())))
}

/// Adds the first account's token to a request.
pub(crate) fn authorized(request: Request) -> Request {
    request.header("Authorization", &format!("Bearer {TOKEN}"))
}

/// A valid template document.
pub(crate) fn document(name: &str, text: &str) -> Value {
    json!({
        "name": name,
        "language": "en_US",
        "category": "MARKETING",
        "allow_category_change": true,
        "components": [{"type": "BODY", "text": text}],
    })
}

/// Polls a condition until it is true; panics after `bound`. There is no pause between polls
/// because each poll sends at least one request.
#[track_caller]
pub(crate) fn until(bound: Duration, what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < bound, "timed out after {bound:?}, waiting until {what}");
    }
}

/// Prints a line to standard error even if the test passes.
pub(crate) fn print_line(line: fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
