//! Windows: generations that end, are hidden and are forgotten.

use super::*;

#[test]
fn a_window_knows_the_last_ones_and_no_older_ones() {
    let items = strings(1_000, 3);
    let mut room = Hashed::default();
    for (name, spec) in specs() {
        for generations in 1..=4 {
            let mut window = made(&spec, terms(WhenFull::Forget { generations }));
            for (i, batch) in items.chunks(37).enumerate() {
                window.insert_all(batch).unwrap();
                let seen = &items[..37 * i + batch.len()];
                let known = (u64::from(generations) - 1) * CAPACITY;
                let last = &seen[seen.len().saturating_sub(known as usize)..];
                assert!(window.contains_all(last).unwrap().iter().all(|&near| near), "{name}: one of the last is gone");
                assert!(
                    window.len() <= u64::from(generations) * CAPACITY && window.filters().len() <= generations as usize
                );
                if name == "scan" {
                    // Random strings are nowhere near each other, and a scan of whole strings has no chance hits.
                    let kept = window.len() as usize;
                    for old in &seen[..seen.len() - kept] {
                        assert!(
                            !window.contains_near(old, &mut room).unwrap(),
                            "what is older than the window is known"
                        );
                    }
                }
            }
            assert_eq!(window.filters().len(), generations as usize);
            assert!(window.older().iter().all(|filter| filter.len() == CAPACITY), "{name}: cut at other places");
        }
    }
}

#[test]
fn progress_is_by_distinct_items_where_these_are_counted_along_and_not_forgotten() {
    let items = strings(CAPACITY as usize, 31);
    each(|name, mut filter| {
        let half = CAPACITY as usize / 2;
        filter.insert_all(&items[..half]).unwrap();
        filter.insert_all(&items[..half]).unwrap();
        let progress = filter.progress().unwrap();
        assert_eq!((progress.generations, progress.items, progress.capacity), (1, 2 * half as u64, CAPACITY), "{name}");
        let forgets = matches!(filter.terms().unwrap().when_full, WhenFull::Forget { .. });
        assert_eq!(progress.ends_by_load, !forgets, "{name}");
        let is_told = !forgets && filter.newest().counts_load();
        let expected = if is_told { 0.5 } else { 1.0 };
        // Loads are estimates: six sigma of some 50 items in tables of 500 bits.
        assert!((progress.fill - expected).abs() < 0.1, "{name}: {progress:?}");
        assert_eq!(progress.fill == 1.0, !is_told, "{name}: {progress:?}");
    });
    assert_eq!(Filter::new(&specs()[0].1).unwrap().progress(), None);
}

/// A window that has had so many generations, the last one half full.
fn aged(spec: &FilterSpec, generations: u32, items: &[BitString]) -> Filter<'static> {
    let mut window = made(spec, terms(WhenFull::Forget { generations }));
    window.insert_all(items).unwrap();
    window
}

#[test]
fn ending_a_generation_is_as_if_it_had_been_full() {
    let items = strings(260, 32);
    for (name, spec) in specs() {
        for ended in 0..6 {
            let mut window = aged(&spec, 4, &items[..210]);
            assert_eq!(window.filters().len(), 3, "{name}");
            let room = window.room_to_age(ended);
            let before = window.bytes();
            let (added, forgotten) = window.age(ended).unwrap();
            assert_eq!((added, forgotten), (ended.min(1), ended.min(4).saturating_sub(1)), "{name}: {ended}");
            assert_eq!(window.bytes(), if name == "scan" { window.bytes() } else { before + room }, "{name}: {ended}");
            // What each generation holds now, the oldest first.
            let lens: Vec<u64> = window.filters().iter().map(Generation::len).collect();
            let mut expected = vec![100, 100, 10];
            expected.extend(std::iter::repeat_n(0, ended.min(4)));
            assert_eq!(lens, expected[expected.len().saturating_sub(4)..], "{name}: {ended}");
            // A file of it goes on as it does.
            let written = bytes(&window);
            let mut read = Filter::decode(&written, Check::Everything).unwrap().into_owned();
            assert_eq!(read.insert_all(&items[210..]).unwrap(), window.insert_all(&items[210..]).unwrap(), "{name}");
            assert!(bytes(&read) == bytes(&window), "{name}: {ended}");
        }
    }
}

#[test]
fn hidden_generations_are_not_asked_and_not_lost() {
    let (items, mut room) = (strings(210, 33), Hashed::default());
    for (name, spec) in specs() {
        let mut window = aged(&spec, 4, &items);
        let written = bytes(&window);
        for ended in [1, 2, 3, 4, 9, 0] {
            window.hide(ended);
            let mut expected = aged(&spec, 4, &items);
            expected.age(ended).unwrap();
            assert_eq!(window.contains_all(&items).unwrap(), expected.contains_all(&items).unwrap(), "{name}: {ended}");
            assert_eq!(window.len(), expected.len(), "{name}: {ended}");
            for item in items.iter().step_by(9) {
                let found = window.find(item, &mut room).unwrap();
                assert_eq!(found.near, expected.find(item, &mut room).unwrap().near, "{name}: {ended}");
                assert_eq!(found.near, window.contains_near(item, &mut room).unwrap(), "{name}: {ended}");
                assert_eq!(found.bands, expected.find(item, &mut room).unwrap().bands, "{name}: {ended}");
            }
            let wrong = BitString::zeros(BITS as usize + 1);
            assert!(window.contains_near(&wrong, &mut room).is_err() && window.contains_all([&wrong]).is_err());
            assert!(bytes(&window) == written, "{name}: {ended}");
        }
    }
    let mut grows = made(&specs()[0].1, terms(WhenFull::Grow));
    grows.insert_all(&items).unwrap();
    grows.hide(9);
    assert_eq!((grows.age(9).unwrap(), grows.window(), grows.len()), ((0, 0), 0, 210));
}
