/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints a program of the conformance test as a file. Argument: a seed, or the name of a
 * handwritten program; without arguments prints the names of the proven ones.
 */
#include "hand_programs.h"
#include "program/explicit/explicit.h"
#include "program/explicit/explicit_write.h"
#include "random_program.h"

#include <stdio.h>
#include <string.h>

static LhProgram *
make(const char *what)
{
    guint64 seed;

    for (const HandProgram *hand = hand_programs; hand->name != NULL; hand++) {
        if (strcmp(hand->name, what) == 0)
            return hand->make();
    }
    return g_ascii_string_to_unsigned(what, 10, 0, G_MAXUINT64, &seed, NULL) ? random_program(seed)
                                                                             : NULL;
}

int
main(int argc, char **argv)
{
    g_autoptr(LhProgram) program = argc > 1 ? make(argv[1]) : NULL;
    g_autoptr(GString) text = g_string_new(NULL);

    for (const HandProgram *hand = hand_programs; argc == 1 && hand->name != NULL; hand++) {
        if (hand->finding == NULL)
            puts(hand->name);
    }
    if (argc == 1)
        return 0;
    if (program == NULL || !lh_program_write(program, text, NULL))
        return 1;
    fputs(text->str, stdout);
    return 0;
}
