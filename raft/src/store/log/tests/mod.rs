mod damage;
mod files;
mod storage;
mod suite;
