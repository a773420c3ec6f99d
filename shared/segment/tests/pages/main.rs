//! The gate and the pages, from outside: what a caller sees.

#[cfg(test)]
mod exact;
#[cfg(test)]
mod fixture;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod give_back;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod reload;
#[cfg(test)]
mod scope;
#[cfg(test)]
mod short;
#[cfg(test)]
mod times;
#[cfg(test)]
mod values;
