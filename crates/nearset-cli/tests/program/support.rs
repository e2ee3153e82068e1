//! Running the program, and a small corpus with families of near-duplicates.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A folder that goes away, and the program run in it.
pub struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        if let Some(folder) = Path::new(name).parent() {
            std::fs::create_dir_all(self.path(folder.to_str().unwrap())).unwrap();
        }
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// The program with these arguments, separated by spaces.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nearset"));
        command.current_dir(self.folder.path()).args(arguments.split_whitespace()).stdin(Stdio::null());
        command.env_remove("NEARSET_CHECKPOINT_BYTES");
        // The servers of tests are on this machine, where no proxy finds them.
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, arguments: &str) -> Ran {
        Ran(self.command(arguments).output().unwrap())
    }

    /// Runs it and expects success.
    pub fn ok(&self, arguments: &str) -> Ran {
        let ran = self.run(arguments);
        assert_eq!(ran.code(), 0, "nearset {arguments}\n{}", ran.stderr());
        ran
    }

    pub fn ok_with_stdin(&self, arguments: &str, input: &[u8]) -> Ran {
        let ran = self.run_with_stdin(arguments, input);
        assert_eq!(ran.code(), 0, "nearset {arguments}\n{}", ran.stderr());
        ran
    }

    pub fn run_with_stdin(&self, arguments: &str, input: &[u8]) -> Ran {
        use std::io::Write;
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_vec();
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let ran = Ran(child.wait_with_output().unwrap());
        // A program that fails need not have read all of it.
        let fed = feeder.join().unwrap();
        assert!(ran.code() != 0 || fed.is_ok(), "nearset {arguments}");
        ran
    }
}

pub struct Ran(Output);

impl Ran {
    pub fn code(&self) -> i32 {
        self.0.status.code().unwrap_or(-1)
    }

    pub fn stdout(&self) -> &[u8] {
        &self.0.stdout
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.0.stderr).into_owned()
    }
}

/// A stream of numbers that is the same everywhere.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea & Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A text of so many words out of 10,000.
pub fn words(numbers: &mut Numbers, count: usize) -> Vec<String> {
    (0..count).map(|_| format!("w{}", numbers.below(10_000))).collect()
}

/// Texts of which every third is an earlier one with one word of 100 changed, and which those are. No copy is copied, so each has an
/// original that stays.
pub fn corpus(documents: usize) -> (Vec<String>, Vec<bool>) {
    let mut numbers = Numbers(1);
    let (mut texts, mut near): (Vec<Vec<String>>, Vec<bool>) = (Vec::new(), Vec::new());
    for i in 0..documents {
        let copied = i % 3 == 2;
        let text = if copied {
            let original = numbers.below(i as u64) as usize;
            let mut text = texts[original - usize::from(original % 3 == 2)].clone();
            let at = numbers.below(text.len() as u64) as usize;
            text[at] = "changed".to_owned();
            text
        } else {
            words(&mut numbers, 100)
        };
        texts.push(text);
        near.push(copied);
    }
    (texts.into_iter().map(|text| text.join(" ")).collect(), near)
}

/// The corpus as JSON Lines, an id per record.
pub fn jsonl(texts: &[String]) -> String {
    texts
        .iter()
        .enumerate()
        .map(|(i, text)| format!("{{\"id\": {i}, \"text\": \"{text}\", \"n\": [1, 2]}}\n"))
        .collect()
}

/// The lines that are not near-duplicates.
pub fn kept(lines: &str, near: &[bool]) -> String {
    lines.split_inclusive('\n').zip(near).filter(|(_, near)| !**near).map(|(line, _)| line).collect()
}

/// The corpus as Parquet, in row groups of 110 rows, with each row's number as column `n`.
pub fn parquet(path: &Path, texts: &[String]) {
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    let schema = parse_message_type("message m { required binary text (STRING); required int64 n; }").unwrap();
    let file = std::fs::File::create(path).unwrap();
    let mut writer = SerializedFileWriter::new(file, std::sync::Arc::new(schema), Default::default()).unwrap();
    for (group, rows) in texts.chunks(110).enumerate() {
        let mut out = writer.next_row_group().unwrap();
        let values: Vec<ByteArray> = rows.iter().map(|text| ByteArray::from(text.as_str())).collect();
        let numbers: Vec<i64> = (0..rows.len() as i64).map(|i| i + 110 * group as i64).collect();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<ByteArrayType>().write_batch(&values, None, None).unwrap();
        column.close().unwrap();
        let mut column = out.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&numbers, None, None).unwrap();
        column.close().unwrap();
        out.close().unwrap();
    }
    writer.close().unwrap();
}

/// Rows of a Parquet file, as `{column: value, ...}`.
pub fn parquet_rows(path: &Path) -> Vec<String> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

/// A text packed by gzip.
pub fn gzip(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}
