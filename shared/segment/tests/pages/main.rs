//! The gate and the pages, from outside: what a caller sees.

#[cfg(test)]
mod fixture;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod hostile;
