//! Which edges of the code were passed. `cargo xtask robustness fuzz --coverage` lets the compiler put a flag at each edge of our
//! crates (SanitizerCoverage), all of them in one table; its address is handed to a function of a certain name before `main` begins.
//!
//! In a plain build nobody calls that function, and there is no table. Nothing that is shipped depends on this crate.

use std::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

static START: AtomicPtr<AtomicU8> = AtomicPtr::new(std::ptr::null_mut());
static LENGTH: AtomicUsize = AtomicUsize::new(0);

/// Called by the code that the compiler adds, with the table of the whole program; perhaps more than once.
///
/// # Safety
/// The bytes from `start` up to `stop` must be there as long as the program runs.
#[allow(unsafe_code)]
// SAFETY: the name is what the compiler's code looks for, and nothing else has it: no sanitizer is linked with this program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __sanitizer_cov_bool_flag_init(start: *mut u8, stop: *mut u8) {
    LENGTH.store(stop.addr().saturating_sub(start.addr()), Ordering::Relaxed);
    START.store(start.cast(), Ordering::Release);
}

/// A byte for each edge: 0 until it is passed, then 1.
#[allow(unsafe_code)]
fn table() -> &'static [AtomicU8] {
    let start = START.load(Ordering::Acquire);
    if start.is_null() {
        return &[];
    }
    // SAFETY: whoever gave the table promised that it stays. Other threads set flags meanwhile, so each is read as an atomic one;
    // they write nothing but 1, once, and it does not matter whether that is seen now or at the next look.
    unsafe { std::slice::from_raw_parts(start, LENGTH.load(Ordering::Relaxed)) }
}

/// How many edges there are; none if the build was not instrumented.
pub fn all() -> usize {
    table().len()
}

/// How many of them were passed until now. Eight are looked at with a step, so that it can be asked after each request.
#[allow(unsafe_code)]
pub fn seen() -> usize {
    // SAFETY: eight bytes next to each other are a number of eight bytes, whatever they are.
    let (before, words, after) = unsafe { table().align_to::<AtomicU64>() };
    let single = |flags: &[AtomicU8]| flags.iter().filter(|flag| flag.load(Ordering::Relaxed) != 0).count();
    let many: usize = words.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum();
    single(before) + many + single(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(unsafe_code)]
    fn flags_are_counted_wherever_the_table_begins() {
        assert_eq!((all(), seen()), (0, 0), "nobody has instrumented this");
        for (begin, length) in [(0, 4096), (1, 40), (3, 4), (7, 2), (5, 1000)] {
            let flags = Vec::leak(vec![0_u8; 4096]).as_mut_ptr();
            // SAFETY: it was leaked, and has as many bytes.
            unsafe {
                flags.write_bytes(1, begin);
                flags.add(begin + length).write_bytes(1, 4096 - begin - length);
                __sanitizer_cov_bool_flag_init(flags.add(begin), flags.add(begin + length));
            }
            assert_eq!((all(), seen()), (length, 0), "what lies around it is none of it");
            for (count, place) in [0, length / 2, length - 1].into_iter().enumerate() {
                // SAFETY: within it.
                unsafe { flags.add(begin + place).write(1) };
                let want = if length == 2 { [1, 2, 2][count] } else { count + 1 };
                assert_eq!(seen(), want, "{length} from {begin}");
            }
        }
    }
}
