//! Hooks of operators: executables and `.sls` files in a folder of the controller, run before and after the
//! stages of jobs. Here is what they are ([`folder`]), what they may hang on ([`stages`]), and how one runs on the
//! controller itself ([`process`]); the jobs call them.

pub mod folder;
pub mod process;
pub mod stages;

#[cfg(test)]
mod tests;
