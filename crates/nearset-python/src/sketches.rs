//! The hashing behind `nearset.datasketch`: the permutations of datasketch, value for value, so that signatures which were
//! stored before go on being of use.
//!
//! Three schemes, as datasketch names them: `affine32` and `affine64` mix a hash once by the finaliser of MurmurHash3 and take
//! `a h + b` modulo 2^32 or 2^64; `legacy`, before its version 2, takes `(a h + b) mod (2^61 - 1)`, products modulo 2^64, and
//! keeps the low 32 bits.

use numpy::{Element, IntoPyArray, PyArray1, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sha1::{Digest, Sha1};

const MERSENNE: u64 = (1 << 61) - 1;

fn mix32(mut hash: u32) -> u32 {
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn mix64(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

/// Lowers each value to the least that a hash's permutation reaches.
fn lower<T: Copy + Ord>(values: &mut [T], a: &[T], b: &[T], hashes: &[T], permute: impl Fn(T, T, T) -> T) {
    // Hashes outside, so that the values stay in registers and the loop over them becomes vector instructions.
    for &hash in hashes {
        for ((value, &a), &b) in values.iter_mut().zip(a).zip(b) {
            *value = (*value).min(permute(a, b, hash));
        }
    }
}

type Array<'py, T> = PyReadonlyArray1<'py, T>;

fn lowered<'py, T: Element + Copy + Ord + Send + Sync>(
    py: Python<'py>,
    (values, a, b): (&Array<'py, T>, &Array<'py, T>, &Array<'py, T>),
    hashes: Vec<T>,
    permute: impl Fn(T, T, T) -> T + Send,
) -> PyResult<Bound<'py, PyArray1<T>>> {
    if values.len() != a.len() || values.len() != b.len() {
        return Err(PyValueError::new_err("Numbers of hash values and permutations mismatch"));
    }
    let (a, b) = (a.as_slice()?, b.as_slice()?);
    let mut lowered = values.as_slice()?.to_vec();
    py.detach(|| lower(&mut lowered, a, b, &hashes, permute));
    Ok(lowered.into_pyarray(py))
}

/// Values after hashes were added, scheme `affine32`.
#[pyfunction]
pub fn _affine32<'py>(
    py: Python<'py>,
    values: Array<'py, u32>,
    a: Array<'py, u32>,
    b: Array<'py, u32>,
    hashes: Array<'py, u32>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let hashes = hashes.as_array().iter().map(|&hash| mix32(hash)).collect();
    lowered(py, (&values, &a, &b), hashes, |a, b, hash| a.wrapping_mul(hash).wrapping_add(b))
}

/// Values after hashes were added, scheme `affine64`.
#[pyfunction]
pub fn _affine64<'py>(
    py: Python<'py>,
    values: Array<'py, u64>,
    a: Array<'py, u64>,
    b: Array<'py, u64>,
    hashes: Array<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let hashes = hashes.as_array().iter().map(|&hash| mix64(hash)).collect();
    lowered(py, (&values, &a, &b), hashes, |a, b, hash| a.wrapping_mul(hash).wrapping_add(b))
}

/// Values after hashes were added, scheme `legacy`.
#[pyfunction]
pub fn _legacy<'py>(
    py: Python<'py>,
    values: Array<'py, u64>,
    a: Array<'py, u64>,
    b: Array<'py, u64>,
    hashes: Array<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let hashes = hashes.as_array().to_vec();
    lowered(py, (&values, &a, &b), hashes, |a, b, hash| {
        let wrapped = a.wrapping_mul(hash).wrapping_add(b);
        let folded = (wrapped & MERSENNE) + (wrapped >> 61);
        (if folded >= MERSENNE { folded - MERSENNE } else { folded }) & u64::from(u32::MAX)
    })
}

/// SHA-1 of each of many byte strings, its first 4 bytes as a number.
#[pyfunction]
pub fn _sha1_hashes32<'py>(py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let hashes = sha1_hashes(items, |digest| u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]))?;
    Ok(hashes.into_pyarray(py))
}

/// SHA-1 of each of many byte strings, its first 8 bytes as a number.
#[pyfunction]
pub fn _sha1_hashes64<'py>(py: Python<'py>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let hashes = sha1_hashes(items, |digest| u64::from_le_bytes(std::array::from_fn(|i| digest[i])))?;
    Ok(hashes.into_pyarray(py))
}

fn sha1_hashes<T>(items: &Bound<'_, PyAny>, number: impl Fn(&[u8]) -> T) -> PyResult<Vec<T>> {
    let hash = |item: PyResult<Bound<'_, PyAny>>| {
        let item = item?;
        if let Ok(bytes) = item.cast::<PyBytes>() {
            return Ok(number(&Sha1::digest(bytes.as_bytes())));
        }
        // What hashlib takes besides bytes: whatever lends its memory.
        let bytes: Vec<u8> = match item.py().get_type::<pyo3::types::PyMemoryView>().call1((&item,)) {
            Ok(view) => view.call_method0("tobytes")?.extract()?,
            Err(_) if item.is_instance_of::<pyo3::types::PyString>() => {
                return Err(PyTypeError::new_err("Strings must be encoded before hashing"));
            }
            Err(_) => {
                let found = item.get_type().name()?;
                return Err(PyTypeError::new_err(format!("object supporting the buffer API required, not {found}")));
            }
        };
        Ok(number(&Sha1::digest(&bytes)))
    };
    items.try_iter()?.map(hash).collect()
}
