/*
 * What a test asks of the stand-in for the driver (driver.c), which it finds by dlsym().
 */
#pragma once

#include <stdint.h>

/* What was loaded since the last time that this was asked. */
typedef struct {
    uint32_t images; /* of machine code, each an ELF file */
    uint32_t kernels;
    char kernel[300];  /* the name of the last one */
    char refused[100]; /* the function that was called last of those that are refused; "": none */
} StandinDriverLog;

typedef void (*StandinDriverTake)(StandinDriverLog *log);
#define STANDIN_DRIVER_TAKE "standin_driver_take"
