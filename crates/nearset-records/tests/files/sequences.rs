//! FASTA and FASTQ, in and out.

use nearset_records::{OutputError, OutputOptions, ReadOptions, RecordWriter};

use crate::support::*;

/// Insulin of humans and of mice (UniProt P01308, P01325), and the A chain alone.
const PROTEINS: &str = "\
>sp|P01308|INS_HUMAN Insulin OS=Homo sapiens
MALWMRLLPLLALLALWGPDPAAAFVNQHLCGSHLVEALYLVCGERGFFYTPKTRREAED
LQVGQVELGGGPGAGSLQPLALEGSLQKRGIVEQCCTSICSLYQLENYCN

>sp|P01325|INS1_MOUSE
MALLVHFLPLLALLALWEPKPTQAFVKQHLCGPHLVEALYLVCGERGFFYTPKSRREVED
PQVEQLELGGSPGDLQTLALEVARQKRGIVDQCCTSICSLYQLENYCN
>empty
>
; a chain, in the old style
GIVEQCCTSICSLYQLENYCN";

fn found(name: &str, text: &str) -> Vec<Result<(String, String), String>> {
    let folder = Folder::new();
    let path = folder.write(name, text);
    let place = format!("{}:", path.display());
    let strip = |text: String| text.strip_prefix(&place).map_or(text.clone(), str::to_owned);
    let records = records(&read(&path, &text_fields()), &text_fields());
    records.into_iter().map(|record| record.map(|(id, text)| (strip(id), text)).map_err(strip)).collect()
}

fn ok(id: &str, text: &str) -> Result<(String, String), String> {
    Ok((id.to_owned(), text.to_owned()))
}

#[test]
fn sequences_over_several_lines_are_one_text() {
    let human = "MALWMRLLPLLALLALWGPDPAAAFVNQHLCGSHLVEALYLVCGERGFFYTPKTRREAEDLQVGQVELGGGPGAGSLQPLALEGSLQKRGIVEQCCTSICSLYQLENYCN";
    let mouse =
        "MALLVHFLPLLALLALWEPKPTQAFVKQHLCGPHLVEALYLVCGERGFFYTPKSRREVEDPQVEQLELGGSPGDLQTLALEVARQKRGIVDQCCTSICSLYQLENYCN";
    let expected = [
        ok("sp|P01308|INS_HUMAN", human),
        ok("sp|P01325|INS1_MOUSE", mouse),
        ok("empty", ""),
        // Without a name, a record is called by its line.
        ok("9", "GIVEQCCTSICSLYQLENYCN"),
    ];
    assert_eq!(found("a.faa", PROTEINS), expected);
    assert_eq!(found("a.fasta", &PROTEINS.replace('\n', "\r\n")), expected);
    let mut later = expected;
    later[3] = ok("10", "GIVEQCCTSICSLYQLENYCN");
    assert_eq!(found("a.fa", &format!("\u{feff}\n{PROTEINS}")), later);
    assert_eq!(found("a.fa", ""), []);
}

#[test]
fn a_sequence_without_a_name_is_a_fault_of_its_own() {
    let records = found("a.fa", "ACGT\nACGT\n>one\nGGGG\n");
    assert_eq!(records[0], Err("1: sequence without a name: a FASTA record starts with a line >NAME".to_owned()));
    assert_eq!(records[1], ok("one", "GGGG"));
}

/// The last read's quality begins with the letters that begin records.
const READS: &str = "@SRR001666.1 071112_SLXA length=36\nGGGTGATGGCCGCTGCCGATGGCGTCAAATCCCACC\n+SRR001666.1\nIIIIIIIIIIIIIIIIIIIIIIIIIIIIII9IG9IC\n\
@two\nGATTTG\nGGG\n+\n!''*((\n((*\n@none\n\n+\n\n@last\nACGT\n+\n@+II";

#[test]
fn qualities_are_told_by_their_length() {
    let expected = [
        ok("SRR001666.1", "GGGTGATGGCCGCTGCCGATGGCGTCAAATCCCACC"),
        ok("two", "GATTTGGGG"),
        ok("none", ""),
        ok("last", "ACGT"),
    ];
    for reads in [READS.to_owned(), READS.replace('\n', "\r\n"), format!("{READS}\n\n")] {
        assert_eq!(found("a.fastq", &reads), expected);
    }
    // An empty quality may be left out.
    assert_eq!(found("a.fq", "@none\n\n+\n@last\nA\n+\nI\n"), [ok("none", ""), ok("last", "A")]);
}

#[test]
fn a_broken_read_is_named_with_its_line_and_costs_no_other() {
    let good = "@good\nACGT\n+\nIIII\n";
    for (broken, faults) in [
        ("@short\nACGT\n+\nIII\n", &["5: the record ends before its quality does"][..]),
        ("@long\nACGT\n+\nIIIII\n", &["5: its quality is not as long"]),
        ("@bare\nACGT\n", &["5: a FASTQ record has a line + behind its sequence, and this one has none"]),
        ("ACGT\n+\nIIII\n", &["5: a FASTQ record starts with a line @NAME"]),
    ] {
        let records = found("a.fq", &format!("{good}{broken}{good}"));
        assert_eq!((&records[0], records.last()), (&ok("good", "ACGT"), Some(&ok("good", "ACGT"))), "{broken}");
        let found: Vec<&String> = records.iter().filter_map(|record| record.as_ref().err()).collect();
        assert_eq!(found.len(), faults.len(), "{broken}: {found:?}");
        assert!(found.iter().zip(faults).all(|(found, fault)| found.starts_with(fault)), "{broken}: {found:?}");
    }
    let cut = found("a.fq", &format!("{good}@cut\nACGT\n+\nII"));
    assert!(cut[1].as_ref().is_err_and(|fault| fault.starts_with("5: the record ends before its quality does")));
}

#[test]
fn kept_sequences_are_copied_byte_for_byte_wherever_reads_stop() {
    let folder = Folder::new();
    for (name, text) in [("a.fa", PROTEINS.replace('\n', "\r\n")), ("b.fq", READS.to_owned())] {
        for packed in ["", ".gz"] {
            let bytes = if packed.is_empty() { text.clone().into_bytes() } else { gzip(text.as_bytes()) };
            let path = folder.write(&format!("{name}{packed}"), bytes);
            let whole = read(&path, &text_fields());
            let spans = |batches: &[nearset_records::Batch]| -> Vec<(u64, Vec<u8>)> {
                let each = |batch: &nearset_records::Batch| -> Vec<(u64, Vec<u8>)> {
                    (0..batch.len()).map(|i| (batch.line(i), batch.raw(i).to_vec())).collect()
                };
                batches.iter().flat_map(each).collect()
            };
            for batch_bytes in 1..80 {
                let options = ReadOptions { batch_bytes, ..ReadOptions::new(text_fields()) };
                let (batches, error) = batches(&sources(&[&path], None), &options);
                assert!(error.is_none(), "{error:?}");
                assert_eq!(spans(&batches), spans(&whole), "{name} in batches of {batch_bytes}");
                assert_eq!(raw(&batches), text.as_bytes());
            }
            let out = folder.path(&format!("out-{name}{packed}"));
            let mut writer = RecordWriter::create(&out, Vec::new(), &OutputOptions::default()).unwrap();
            for batch in &whole {
                writer.begin(batch).unwrap();
                for i in (0..batch.len()).rev() {
                    writer.copy(batch, i).unwrap();
                }
            }
            writer.finish().unwrap();
            let written = std::fs::read(&out).unwrap();
            let written = if packed.is_empty() { written } else { gunzip(&written) };
            // The last record of the source, which has no line end, comes first and gets one.
            let mut expected: Vec<Vec<u8>> = spans(&whole).into_iter().map(|(_, bytes)| bytes).rev().collect();
            expected[0].push(b'\n');
            assert_eq!(written, expected.concat());
        }
    }
}

#[test]
fn sequences_have_no_fields_to_add_to() {
    let folder = Folder::new();
    let batch = &read(&folder.write("a.fa", PROTEINS), &text_fields())[0];
    let added = vec![nearset_records::Added::new("near", nearset_records::AddedKind::Bool)];
    let mut writer = RecordWriter::create(&folder.path("out.fa"), added, &OutputOptions::default()).unwrap();
    assert!(matches!(writer.begin(batch), Err(OutputError::Unsupported { .. })));
}
