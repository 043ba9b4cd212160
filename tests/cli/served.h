/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What served.c and ask.c agree on. A line is a sequence of words that end with NUL: the folder,
 * the number of words of the program, these words, and the environment; the three standard streams
 * come with its first byte, and its end is the end of what is written. The answer is one byte, the
 * exit status.
 */
#pragma once

#define SERVED_SOCKET "LONGHAUL_SERVED"   /* the variable with the path of the socket */
#define SERVED_PROGRAM "LONGHAUL_PROGRAM" /* the variable with the path of the program */
#define SERVED_STREAMS 3
#define SERVED_FAILED 99 /* the exit status if nothing came of it */
