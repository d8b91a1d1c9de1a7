//! What a process looks like: `vLLM engine core`, `SGLang scheduler`, …
//!
//! A table, first match wins. Engines set their titles over the old arguments, so a title comes as one
//! string padded with blanks; until it is set, a child of Python's `multiprocessing` looks like any
//! other and is told by its parent. The short name is cut to 15 bytes by the kernel, so
//! `VLLM::EngineCor` has to do when the command line cannot be read. vLLM's prefix can be changed by
//! its users, the part after `::` cannot.

/// How a row is recognised.
enum Sign {
    /// The title or the short name starts with this.
    Title(&'static str),
    /// The first word of the title has this after a prefix of the user's choice.
    Role(&'static str),
    /// The program (or the script that an interpreter runs) has this file name, and the words stand
    /// somewhere behind it in this order.
    Program(&'static str, &'static [&'static str]),
    /// The interpreter runs this module (`-m`).
    Module(&'static str),
    /// The command line has this anywhere.
    Text(&'static str),
}

use Sign::{Module, Program, Role, Text, Title};

const ENGINES: &[(Sign, &str)] = &[
    (Title("VLLM::EngineCore"), "vLLM engine core"),
    (Title("VLLM::Worker"), "vLLM worker"),
    (Title("VLLM::APIServer"), "vLLM API server"),
    (Title("VLLM::DPCoordinator"), "vLLM coordinator"),
    (Title("sglang::scheduler"), "SGLang scheduler"),
    (Title("sglang::detokenizer"), "SGLang detokenizer"),
    (Title("sglang::data_parallel_controller"), "SGLang controller"),
    (Title("sglang::tokenizer_worker"), "SGLang tokenizer"),
    (Title("ray::RayWorkerWrapper"), "vLLM Ray worker"),
    (Title("ray::"), "Ray worker"),
    (Role("::EngineCore"), "vLLM engine core"),
    (Role("::Worker"), "vLLM worker"),
    (Role("::APIServer"), "vLLM API server"),
    (Role("::DPCoordinator"), "vLLM coordinator"),
    (Program("vllm-rs", &["frontend"]), "vLLM API server"),
    (Program("vllm-rs", &["serve"]), "vLLM server"),
    (Program("vllm", &["serve"]), "vLLM server"),
    (Program("vllm", &["bench"]), "vLLM benchmark"),
    (Module("vllm.entrypoints.cli.main"), "vLLM server"),
    (Module("vllm.entrypoints"), "vLLM server"),
    (Program("sglang", &["serve"]), "SGLang server"),
    (Module("sglang.launch_server"), "SGLang server"),
    (Module("sglang_router"), "SGLang router"),
    (Program("trtllm-serve", &[]), "TensorRT-LLM server"),
    (Program("trtllm-llmapi-launch", &[]), "TensorRT-LLM launcher"),
    (Program("trtllmExecutorWorker", &[]), "TensorRT-LLM worker"),
    (Program("tritonserver", &[]), "Triton server"),
    (Program("triton_python_backend_stub", &[]), "Triton Python model"),
    (Program("llama-server", &[]), "llama.cpp server"),
    (Program("text-generation-launcher", &[]), "TGI launcher"),
    (Program("text-generation-router", &[]), "TGI router"),
    (Program("text-generation-server", &[]), "TGI shard"),
    (Program("lmdeploy", &["serve"]), "LMDeploy server"),
    (Module("lmdeploy.serve"), "LMDeploy server"),
    (Program("ollama", &["serve"]), "Ollama server"),
    (Program("ollama", &["runner"]), "Ollama runner"),
    (Program("ollama_llama_server", &[]), "Ollama runner"),
    (Program("infertop", &["worker"]), "infertop worker"),
    (Text("mpi4py.futures.server"), "TensorRT-LLM rank"),
    (Program("nvidia-cuda-mps-server", &[]), "MPS server"),
    (Program("nvidia-cuda-mps-control", &[]), "MPS control"),
];

/// Children that carry no name of their own yet, and what their parent's name becomes.
const CHILDREN: &[(&str, &str)] = &[
    ("from multiprocessing.spawn import spawn_main", "child, starting"),
    ("from multiprocessing.forkserver import main", "fork server"),
    ("from multiprocessing.resource_tracker import main", "helper"),
];

/// The kernel's limit for short names.
const COMM_BYTES: usize = 15;

/// What the process looks like by its own name and arguments.
pub(crate) fn recognise(comm: &str, arguments: &[String]) -> Option<&'static str> {
    // An own title comes as one argument and may be split at blanks without loss.
    let words: Vec<&str> = match arguments {
        [title] => title.split_whitespace().collect(),
        many => many.iter().map(|word| word.trim()).collect(),
    };
    let found = ENGINES.iter().find(|(sign, _)| matches(sign, comm, &words));
    found.map(|&(_, name)| name)
}

/// What a nameless child is, once its parent is known; `None` if it is not such a child.
pub(crate) fn unnamed_child(arguments: &[String]) -> Option<&'static str> {
    CHILDREN.iter().find_map(|&(text, role)| {
        arguments.iter().any(|argument| argument.contains(text)).then_some(role)
    })
}

/// `vLLM child, starting` from `vLLM server`.
pub(crate) fn child_of(parent: &str, role: &str) -> String {
    // The last word of a name is the part that the parent plays.
    let family = parent.split_once(' ').map_or(parent, |(family, _)| family);
    format!("{family} {role}")
}

fn matches(sign: &Sign, comm: &str, words: &[&str]) -> bool {
    match *sign {
        Title(title) => {
            words.first().is_some_and(|word| word.starts_with(title)) || cut_equal(comm, title)
        }
        Role(role) => {
            let first = words.first().copied().unwrap_or(comm);
            first.split_once("::").is_some_and(|(prefix, rest)| {
                !prefix.is_empty() && !prefix.contains('/') && rest.starts_with(&role[2..])
            })
        }
        Program(program, then) => {
            let Some(at) = program_at(words, program) else {
                // Without a command line the short name alone decides, for programs of one role.
                return words.is_empty() && then.is_empty() && comm_is(comm, program);
            };
            let mut rest = words[at + 1..].iter();
            then.iter().all(|wanted| rest.any(|word| word == wanted))
        }
        Module(module) => words.windows(2).any(|pair| {
            pair[0] == "-m"
                && pair[1].strip_prefix(module).is_some_and(|r| r.is_empty() || r.starts_with('.'))
        }),
        Text(text) => words.iter().any(|word| word.contains(text)),
    }
}

/// Where the program's name stands: first, or behind an interpreter and its flags.
fn program_at(words: &[&str], program: &str) -> Option<usize> {
    let file = |word: &str| word.rsplit('/').next().unwrap_or(word).to_string();
    let first = file(words.first()?);
    if first == program {
        return Some(0);
    }
    let interpreter = ["python", "pypy", "bash", "sh", "tini", "dumb-init", "env"];
    if !interpreter.iter().any(|name| first.starts_with(name)) {
        return None;
    }
    let at = words.iter().skip(1).position(|word| !word.starts_with('-'))? + 1;
    (file(words[at]) == program).then_some(at)
}

/// Whether a short name is the start of a title, as far as 15 bytes go.
fn cut_equal(comm: &str, title: &str) -> bool {
    if comm.len() >= COMM_BYTES {
        title.starts_with(comm) || comm.starts_with(title)
    } else {
        comm.starts_with(title)
    }
}

fn comm_is(comm: &str, program: &str) -> bool {
    comm == program || (comm.len() >= COMM_BYTES && program.starts_with(comm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(command: &str) -> Vec<String> {
        command.split(' ').map(str::to_string).collect()
    }

    fn check(comm: &str, command: &str, expected: &str) {
        let found = recognise(comm, &words(command)).unwrap_or_default();
        assert_eq!(found, expected, "{command}");
    }

    #[test]
    fn engines_are_known_by_their_arguments() {
        check("vllm", "/opt/venv/bin/python /opt/venv/bin/vllm serve m --port 8000", "vLLM server");
        check(
            "python",
            "python3 -u -m vllm.entrypoints.openai.api_server --model m",
            "vLLM server",
        );
        check("vllm-rs", "vllm-rs frontend --listen-fd 3", "vLLM API server");
        check("python", "python -m sglang.launch_server --model-path m", "SGLang server");
        check(
            "trtllm-serve",
            "/usr/bin/python3 /usr/local/bin/trtllm-serve m",
            "TensorRT-LLM server",
        );
        check("python3", "python3 -m mpi4py.futures.server", "TensorRT-LLM rank");
        check("tritonserver", "tritonserver --model-repository=/models", "Triton server");
        check("llama-server", "/app/llama-server -m x.gguf", "llama.cpp server");
        check("text-generation", "text-generation-server serve m", "TGI shard");
        check(
            "lmdeploy",
            "/usr/bin/python /usr/bin/lmdeploy serve api_server m",
            "LMDeploy server",
        );
        check("ollama", "/usr/local/bin/ollama serve", "Ollama server");
        check("ollama", "/usr/local/bin/ollama runner --model x", "Ollama runner");
    }

    #[test]
    fn people_who_write_about_engines_are_none() {
        check("vim", "vim vllm serve", "");
        check("grep", "grep VLLM::EngineCore", "");
        check("bash", "bash -c tail -f vllm.log", "");
        check("python3", "python3 train.py --model vllm", "");
    }

    #[test]
    fn a_padded_title_is_one_argument() {
        let title = format!("VLLM::Worker_TP3{}", " ".repeat(200));
        assert_eq!(recognise("VLLM::Worker_TP", &[title]), Some("vLLM worker"));
        assert_eq!(recognise("x", &["prod::EngineCore_DP1".into()]), Some("vLLM engine core"));
        assert_eq!(recognise("x", &["sglang::scheduler_TP0".into()]), Some("SGLang scheduler"));
    }

    #[test]
    fn the_cut_short_name_is_enough() {
        assert_eq!(recognise("VLLM::EngineCor", &[]), Some("vLLM engine core"));
        assert_eq!(recognise("VLLM::Worker_TP", &[]), Some("vLLM worker"));
        assert_eq!(recognise("VLLM::APIServer", &[]), Some("vLLM API server"));
        assert_eq!(recognise("sglang::schedul", &[]), Some("SGLang scheduler"));
        assert_eq!(recognise("llama-server", &[]), Some("llama.cpp server"));
        assert_eq!(recognise("python", &[]), None);
        assert_eq!(recognise("", &[]), None);
    }

    #[test]
    fn a_child_without_a_title_takes_its_parents_family() {
        let child = words("python -c from|multiprocessing");
        assert_eq!(unnamed_child(&child), None);
        let child = vec![
            "/usr/bin/python3".to_string(),
            "-c".into(),
            "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7)"
                .into(),
        ];
        let role = unnamed_child(&child).unwrap();
        assert_eq!(child_of("vLLM server", role), "vLLM child, starting");
    }

    proptest! {
        #[test]
        fn no_name_is_too_strange(comm in ".*", arguments in prop::collection::vec(".*", 0..4)) {
            let _ = recognise(&comm, &arguments);
            let _ = unnamed_child(&arguments);
        }
    }
}
