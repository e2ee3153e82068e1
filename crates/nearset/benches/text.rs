//! Text to shingle hashes, one core, native dispatch, beside what cannot be beaten: xxh3 and a copy of the bytes.

mod corpus;

use std::sync::LazyLock;

use divan::{Bencher, black_box, counter::BytesCount};
use nearset::{Seed, Shingler};

static LICENCES: LazyLock<Option<Vec<String>>> = LazyLock::new(corpus::licences);

/// One paragraph per language, repeated to documents of 4 kB, 4 MB in all.
const LANGUAGES: [(&str, &str); 7] = [
    (
        "German",
        "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und sollen einander im Geist der Brüderlichkeit begegnen. ",
    ),
    (
        "Russian",
        "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью и должны поступать в отношении друг друга в духе братства. ",
    ),
    (
        "Arabic",
        "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق، وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح الإخاء. ",
    ),
    ("Chinese", "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。"),
    (
        "Korean",
        "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 부여받았으며 서로 형제애의 정신으로 행동하여야 한다. ",
    ),
    (
        "Hindi",
        "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। उन्हें बुद्धि और अन्तरात्मा की देन प्राप्त है और परस्पर उन्हें भाईचारे के भाव से बर्ताव करना चाहिए। ",
    ),
    (
        "Vietnamese",
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. Mọi con người đều được tạo hoá ban cho lý trí và lương tâm và cần phải đối xử với nhau trong tình anh em. ",
    ),
];

fn main() {
    divan::main();
}

fn over(bencher: Bencher, documents: Option<&[String]>, mut work: impl FnMut(&str)) {
    let Some(documents) = documents else { return };
    let bytes: usize = documents.iter().map(String::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| documents.iter().for_each(|text| work(black_box(text))));
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn floor_copy(bencher: Bencher) {
    let mut copy = Vec::new();
    over(bencher, LICENCES.as_deref(), |text| {
        copy.clear();
        copy.extend_from_slice(text.as_bytes());
        black_box(&copy);
    });
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn floor_xxh3(bencher: Bencher) {
    over(bencher, LICENCES.as_deref(), |text| {
        black_box(xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    });
}

#[divan::bench(sample_count = 20, sample_size = 1, args = ["words:5", "chars:9", "bytes:13"])]
fn licences(bencher: Bencher, shingling: &str) {
    let shingler = Shingler::new(shingling.parse().expect("a shingling"), Seed::default()).expect("a fair length");
    let mut hashes = Vec::new();
    over(bencher, LICENCES.as_deref(), |text| {
        shingler.shingles(text, &mut hashes);
        black_box(&hashes);
    });
}

#[divan::bench(sample_count = 20, sample_size = 1, args = LANGUAGES.map(|(name, _)| name))]
fn words_5(bencher: Bencher, language: &str) {
    let (_, paragraph) = LANGUAGES.iter().find(|(name, _)| *name == language).expect("one of the languages");
    let documents = vec![paragraph.repeat(4000 / paragraph.len()); 1000];
    let shingler = Shingler::new("words:5".parse().expect("a shingling"), Seed::default()).expect("a fair length");
    let mut hashes = Vec::new();
    over(bencher, Some(&documents), |text| {
        shingler.shingles(text, &mut hashes);
        black_box(&hashes);
    });
}
