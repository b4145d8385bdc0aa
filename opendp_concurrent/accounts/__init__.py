"""What a launch may do, decided by objects that know no data, no FFI, no file and no clock."""
