class S3Server:
    pass
