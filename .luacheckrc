std = "luajit"
read_globals = { "vim" }
-- buffer, window and global options and variables are set through these
globals = { "vim.b", "vim.bo", "vim.g", "vim.go", "vim.o", "vim.wo", "vim.opt", "vim.opt_local" }
max_line_length = 110
