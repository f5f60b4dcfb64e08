//! The tools `python` and `javascript` through a real server: what code of a step is given and gives back, where its text
//! comes from, what it reaches, and what becomes of code that means no good.

mod conventions;
mod hostile;
mod steps;
mod support;
mod web;
