// Package corpus keeps the seeds of random tests that were the first to reach
// something, in a text file that can be read, merged and cut with line tools.
package corpus
