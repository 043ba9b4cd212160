/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Protocol between served.c and ask.c. A line is a sequence of NUL-terminated words: the folder,
 * the number of words of the command, these words, and the environment. The three standard streams
 * are passed with its first byte; the end of the data ends the line. The answer is one byte, the
 * exit status.
 */
#pragma once

#define SERVED_SOCKET "LONGHAUL_SERVED"   /* the variable with the path of the socket */
#define SERVED_PROGRAM "LONGHAUL_PROGRAM" /* the variable with the path of the program */
#define SERVED_STREAMS 3
#define SERVED_FAILED 99 /* exit status if serving failed */
